import { isDeepStrictEqual } from "node:util";
import type { Resource } from "../../api/resource.ts";
import type { ObjectStatus } from "./accept-objects.ts";

/** As every Gateway API kind has them (metav1.Condition). */
export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  observedGeneration: number;
  lastTransitionTime: string;
  reason: string;
  message: string;
}

/** The `status` of an object of ours. */
export interface StoredStatus {
  conditions?: Condition[];
  /** The version that goes on while a newer one is broken, so that another process can carry it on too. */
  lastGoodVersion?: { generation?: number; spec: unknown } | null;
}

type Verdict = Pick<Condition, "status" | "reason" | "message">;

const MAX_MESSAGE = 32_768;

/**
 * The status to be stored.
 * @param stored what is there: a condition that stays as it is keeps the time of its last change
 * @param time RFC 3339, now
 */
export function statusToStore(status: ObjectStatus, stored: StoredStatus, time: string): StoredStatus {
  const condition = (type: string, verdict: Verdict): Condition => {
    const old = stored.conditions?.find((one) => one.type === type);
    return {
      type,
      ...verdict,
      message: verdict.message.slice(0, MAX_MESSAGE),
      observedGeneration: status.generation ?? 0,
      lastTransitionTime: old?.status === verdict.status ? old.lastTransitionTime : time,
    };
  };
  const { lastGood } = status;
  return {
    conditions: [
      condition("Accepted", accepted(status)),
      condition("ResolvedRefs", resolvedRefs(status)),
      condition("Programmed", programmed(status)),
    ],
    lastGoodVersion: lastGood === undefined ? null : versionOf(lastGood),
  };
}

function versionOf({ metadata, spec }: Resource): NonNullable<StoredStatus["lastGoodVersion"]> {
  return { ...(metadata.generation === undefined ? {} : { generation: metadata.generation }), spec };
}

function accepted({ accepted, problems }: ObjectStatus): Verdict {
  if (accepted) return { status: "True", reason: "Accepted", message: "valid" };
  return { status: "False", reason: "Invalid", message: problems.join("\n") };
}

function resolvedRefs({ accepted, resolved, problems }: ObjectStatus): Verdict {
  if (!accepted) return { status: "Unknown", reason: "Invalid", message: "not looked at: the object is invalid" };
  if (resolved) return { status: "True", reason: "ResolvedRefs", message: "every name leads somewhere" };
  return { status: "False", reason: "RefNotFound", message: problems.join("\n") };
}

function programmed({ accepted, programmed, lastGood, refuses, problems }: ObjectStatus): Verdict {
  if (accepted && programmed) return { status: "True", reason: "Programmed", message: "in use" };
  if (accepted) return { status: "False", reason: "RefNotFound", message: `not in use: ${problems.join("\n")}` };
  if (lastGood !== undefined) {
    const { generation } = lastGood.metadata;
    const which = generation === undefined ? "the last good version" : `generation ${generation}, the last good one,`;
    return { status: "False", reason: "LastGoodVersion", message: `${which} goes on` };
  }
  if (refuses === true)
    return {
      status: "False",
      reason: "Refusing",
      message: "it was in force and no earlier version is known: requests are refused until it is mended",
    };
  return { status: "False", reason: "Invalid", message: "not in use, and no version before it was" };
}

/** What a stored status says of the time before this process. */
export function statusBefore(object: Resource, { conditions, lastGoodVersion }: StoredStatus) {
  const last = conditions?.find(({ type }) => type === "Programmed");
  const { generation, ...metadata } = object.metadata;
  const lastGood: Resource | undefined = lastGoodVersion
    ? {
        ...object,
        metadata: {
          ...metadata,
          ...(lastGoodVersion.generation === undefined ? {} : { generation: lastGoodVersion.generation }),
        },
        spec: lastGoodVersion.spec,
      }
    : undefined;
  const wasInUse = last?.status === "True" || ["LastGoodVersion", "Refusing"].includes(last?.reason ?? "");
  return { lastGood, wasInUse };
}

/** Whether two statuses say the same, times aside. A generation names its spec. */
export function sameStatus(a: StoredStatus, b: StoredStatus): boolean {
  const said = ({ conditions = [], lastGoodVersion }: StoredStatus) => [
    conditions.map(({ lastTransitionTime: _, ...rest }) => rest),
    lastGoodVersion?.generation,
  ];
  return isDeepStrictEqual(said(a), said(b));
}
