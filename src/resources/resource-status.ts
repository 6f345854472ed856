import { namespaceOf, type Resource } from "../api/resource.ts";
import type { Problem } from "../api/validate.ts";
import type { Snapshot } from "./snapshot.ts";

/** Which object is meant. */
export interface Identity {
  kind: string;
  namespace: string;
  name: string;
  /** The generation that was looked at, where there is one. */
  generation?: number;
}

/** Whether a declared object is in use, and what is wrong if not. */
export interface ResourceStatus extends Identity {
  accepted: boolean;
  /** Its references lead somewhere. */
  resolved: boolean;
  /** A version of it is in use: this one, or the last good one before it. */
  programmed: boolean;
  /** In words, with places in files where there are any. */
  problems: string[];
}

/** The status of everything that people write about inference in a snapshot that is in use as it stands. */
export function statusesOf(snapshot: Snapshot): ResourceStatus[] {
  return [...snapshot.policies, ...snapshot.providers, ...snapshot.models, ...snapshot.tenants].map((object) => ({
    ...identityOf(object),
    accepted: true,
    resolved: true,
    programmed: true,
    problems: [],
  }));
}

/**
 * The status of everything after a change was refused: what the problems name is not accepted; of it, and of all else,
 * what was in use before goes on.
 */
export function refusedStatuses(
  inUse: Snapshot,
  problems: readonly { message: string; file: string; line: number; column: number; object?: Identity }[],
): ResourceStatus[] {
  const statuses = new Map(statusesOf(inUse).map((status) => [identityKey(status), status]));
  for (const { message, file, line, column, object } of problems) {
    const identity = object ?? { kind: "File", namespace: "", name: file };
    const known = statuses.get(identityKey(identity));
    statuses.set(identityKey(identity), {
      ...identity,
      accepted: false,
      resolved: known?.resolved ?? false,
      programmed: known?.programmed ?? false,
      problems: [...(known?.problems ?? []), `${file}:${line}:${column}: ${message}`],
    });
  }
  return [...statuses.values()];
}

/** `kind namespace/name` */
export function identityKey({ kind, namespace, name }: Identity): string {
  return `${kind} ${namespace}/${name}`;
}

export function identityOf(object: Resource): Identity {
  const { generation, name } = object.metadata;
  return {
    kind: object.kind,
    namespace: namespaceOf(object),
    name,
    ...(generation === undefined ? {} : { generation }),
  };
}

/** `spec.rules.0.route: message` */
export function problemText({ path, message }: Problem): string {
  return path.length > 0 ? `${path.join(".")}: ${message}` : message;
}
