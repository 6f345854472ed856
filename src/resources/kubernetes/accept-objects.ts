import type { Resource } from "../../api/resource.ts";
import { validateResource } from "../../api/validate.ts";
import type { SnapshotCheck } from "../files.ts";
import { identityKey, identityOf, problemText, type ResourceStatus } from "../resource-status.ts";
import { buildSnapshot, type Snapshot } from "../snapshot.ts";
import { refusingPolicies } from "./refusing-policy.ts";

export interface DeclaredObject {
  /** As declared; nobody has checked it. */
  readonly object: Resource;
  /** What its own status says of the time before this process. */
  readonly before: {
    /** The last good version, where a newer one is broken. */
    readonly lastGood: Resource | undefined;
    /** Some version was in use. */
    readonly wasInUse: boolean;
  };
}

export interface AcceptChecks {
  /** Mistakes that keep an object from being used. */
  mistakes: SnapshotCheck;
  /** Names that nothing has. */
  references: SnapshotCheck;
}

/** A status with what only Kubernetes needs. */
export interface ObjectStatus extends ResourceStatus {
  /** The version that goes on where this one is broken. */
  lastGood?: Resource;
  /** A policy was in force and no version of it can be used: its namespace refuses until it is mended. */
  refuses?: true;
}

export interface Accepted {
  readonly snapshot: Snapshot;
  /** The last good version of each object, by `kind namespace/name`. */
  readonly lastGood: ReadonlyMap<string, Resource>;
  readonly statuses: readonly ObjectStatus[];
}

/**
 * Judges each object on its own: a broken one leaves its last good version in use and everybody else alone. Pure.
 * @param declared objects of our kinds
 * @param standard objects of standard kinds, which the API server has checked
 * @param lastGood what `lastGood` was the last time
 */
export function acceptObjects(
  declared: readonly DeclaredObject[],
  standard: readonly Resource[],
  lastGood: ReadonlyMap<string, Resource>,
  checks: AcceptChecks,
): Accepted {
  const judgements = declared.map((one) => new Judgement(one, lastGood));
  const snapshotOf = (used: readonly Judgement[]) =>
    buildSnapshot([...standard, ...used.flatMap((one) => one.version ?? [])]);
  let whole = snapshotOf(judgements);
  while (withdrawBroken(judgements, checks.mistakes(whole))) whole = snapshotOf(judgements);
  for (const { object, problem } of checks.references(whole))
    judgements.find((one) => one.version === object)?.dangling.push(problemText(problem));
  const refusing = judgements.filter((one) => one.refuses).flatMap((one) => refusingPolicies(one.declared.object));
  const { policies, ...rest } = snapshotOf(judgements.filter((one) => one.programmed));
  return {
    snapshot: { ...rest, policies: [...policies, ...refusing] },
    lastGood: new Map(
      judgements.flatMap(({ key, version }) => (version === undefined ? [] : [[key, version] as const])),
    ),
    statuses: judgements.map((one) => one.status()),
  };
}

type Mistakes = ReturnType<SnapshotCheck>;

/** Takes out of use what has a mistake; false when there was nothing to take out. */
function withdrawBroken(judgements: readonly Judgement[], mistakes: Mistakes): boolean {
  const broken = judgements.filter((one) => mistakes.some(({ object }) => object === one.version));
  for (const one of broken)
    one.withdraw(mistakes.filter(({ object }) => object === one.version).map(({ problem }) => problemText(problem)));
  return broken.length > 0;
}

/** What becomes of one object. */
class Judgement {
  readonly key: string;
  readonly declared: DeclaredObject;
  /** The version to be used, if any can be. */
  version: Resource | undefined;
  /** Names in it that nothing has. */
  readonly dangling: string[] = [];
  readonly #problems: string[];
  readonly #previous: Resource | undefined;

  constructor(declared: DeclaredObject, lastGood: ReadonlyMap<string, Resource>) {
    const { object, before } = declared;
    this.declared = declared;
    this.key = identityKey(identityOf(object));
    this.#previous = lastGood.get(this.key) ?? validOnly(before.lastGood);
    this.#problems = problemsOf(object);
    this.version = this.accepted ? object : this.#previous;
  }

  /** Takes the version out of use, for the last good one before it if there is one. */
  withdraw(problems: readonly string[]): void {
    const isDeclared = this.version === this.declared.object;
    if (isDeclared) this.#problems.push(...problems);
    this.version = isDeclared && this.#previous !== this.declared.object ? this.#previous : undefined;
  }

  get accepted(): boolean {
    return this.#problems.length === 0;
  }

  /** A provider without its key would send requests that fail: it is none until the key is there. */
  get programmed(): boolean {
    return this.version !== undefined && (this.version.kind !== "InferenceProvider" || this.dangling.length === 0);
  }

  get refuses(): boolean {
    const { object, before } = this.declared;
    return object.kind === "InferencePolicy" && this.version === undefined && before.wasInUse;
  }

  status(): ObjectStatus {
    return {
      ...identityOf(this.declared.object),
      accepted: this.accepted,
      resolved: this.accepted && this.dangling.length === 0,
      programmed: this.programmed,
      problems: this.accepted ? this.dangling : this.#problems,
      ...(this.accepted || this.version === undefined ? {} : { lastGood: this.version }),
      ...(this.refuses ? { refuses: true } : {}),
    };
  }
}

function validOnly(object: Resource | undefined): Resource | undefined {
  return object !== undefined && problemsOf(object).length === 0 ? object : undefined;
}

/** Checking takes a while and objects do not change: each is checked once. */
const checked = new WeakMap<Resource, readonly string[]>();

function problemsOf(object: Resource): string[] {
  const known = checked.get(object);
  if (known !== undefined) return [...known];
  const problems = validateResource(object).map(problemText);
  checked.set(object, problems);
  return [...problems];
}
