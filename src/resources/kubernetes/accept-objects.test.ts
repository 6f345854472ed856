import { expect, test } from "vitest";
import { KINFERENCE_API } from "../../api/inference-policy.ts";
import type { Resource } from "../../api/resource.ts";
import { referenceProblems } from "../references.ts";
import type { Snapshot } from "../snapshot.ts";
import { type AcceptChecks, acceptObjects, type DeclaredObject, type ObjectStatus } from "./accept-objects.ts";
import { type StoredStatus, sameStatus, statusBefore, statusToStore } from "./conditions.ts";

const GOOD = { rules: [{ name: "r", reject: { message: "no" } }] };
const BROKEN = { rules: [{ name: "r" }] };
/** Fits the schema; only the check below finds its mistake. */
const UNCOMPILABLE = { rules: [{ name: "mistake", reject: { message: "no" } }] };

const checks: AcceptChecks = {
  mistakes: (snapshot: Snapshot) =>
    snapshot.policies
      .filter(({ spec }) => spec.rules[0]?.name === "mistake")
      .map((object) => ({ object, problem: { path: ["spec", "rules", 0], message: "does not compile" } })),
  references: referenceProblems,
};

function object(kind: string, name: string, spec: unknown, generation = 1): Resource {
  return { apiVersion: KINFERENCE_API, kind, metadata: { name, namespace: "n", generation }, spec };
}
const NEVER = { lastGood: undefined, wasInUse: false };
const declared = (one: Resource, before: DeclaredObject["before"] = NEVER): DeclaredObject => ({ object: one, before });
const policy = (spec: unknown, generation = 1) => object("InferencePolicy", "p", spec, generation);
const secret: Resource = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "key", namespace: "n" },
  spec: undefined,
  ...{ data: { apiKey: "c2VjcmV0" } },
};
const provider = object("InferenceProvider", "out", {
  type: "OpenAI",
  credentialsRef: { name: "key" },
  models: [{ name: "m" }],
});

/** What is said of the policy, and which generations are in use. */
function outcome(one: DeclaredObject, lastGood: ReadonlyMap<string, Resource> = new Map()) {
  const accepted = acceptObjects([one], [], lastGood, checks);
  const [status] = accepted.statuses;
  if (status === undefined) throw new Error("each object has a status");
  const conditions = statusToStore(status, {}, "2026-01-01T00:00:00Z").conditions ?? [];
  return {
    inUse: accepted.snapshot.policies.map(({ metadata, spec }) => metadata.generation ?? spec.rules[0]?.name),
    programmed: conditions.at(-1)?.reason,
    lastGood: accepted.lastGood,
    status,
  };
}

test.each([
  ["the schema refuses", BROKEN, "spec.rules.0: a rule needs `route`, `reject` or `limit`"],
  ["compiling refuses", UNCOMPILABLE, "spec.rules.0: does not compile"],
])("what %s leaves the last good version in use, change after change", (_how, spec, problem) => {
  const first = outcome(declared(policy(GOOD, 1)));
  expect(first).toMatchObject({ inUse: [1], programmed: "Programmed" });
  const second = outcome(declared(policy(spec, 2)), first.lastGood);
  expect(second).toMatchObject({ inUse: [1], programmed: "LastGoodVersion", status: { problems: [problem] } });
  const third = outcome(declared(policy(spec, 3)), second.lastGood);
  expect(third).toMatchObject({ inUse: [1], programmed: "LastGoodVersion" });
  expect(outcome(declared(policy(GOOD, 4)), third.lastGood)).toMatchObject({ inUse: [4], programmed: "Programmed" });
});

test("a version that the status kept goes on in a new process; one that is broken itself does not", () => {
  const kept = { lastGood: policy(GOOD, 1), wasInUse: true };
  expect(outcome(declared(policy(BROKEN, 2), kept))).toMatchObject({ inUse: [1], programmed: "LastGoodVersion" });
  for (const spec of [BROKEN, UNCOMPILABLE, null]) {
    const spoilt = { lastGood: policy(spec, 1), wasInUse: true };
    expect(outcome(declared(policy(BROKEN, 2), spoilt))).toMatchObject({ inUse: ["invalid"], programmed: "Refusing" });
  }
});

test("of a policy that was in force and is lost, its namespace and the Gateways that it names are refused", () => {
  const spec = { ...BROKEN, targetRefs: [{ kind: "Gateway", name: "public" }, null, { kind: "HTTPRoute", name: "x" }] };
  const { snapshot } = acceptObjects(
    [declared(policy(spec), { lastGood: undefined, wasInUse: true })],
    [],
    new Map(),
    checks,
  );
  expect(snapshot.policies.map(({ metadata, spec }) => [metadata.namespace, spec.targetRefs])).toEqual([
    ["n", undefined],
    ["n", [{ kind: "Gateway", name: "public" }]],
  ]);
  expect(outcome(declared(policy(BROKEN)))).toMatchObject({ inUse: [], programmed: "Invalid" });
});

test("a broken object harms nobody else, and one that is deleted is forgotten", () => {
  const others = [
    declared(object("InferencePolicy", "q", GOOD)),
    declared(object("InferenceModel", "m", { family: 1 })),
  ];
  const { snapshot, statuses, lastGood } = acceptObjects([declared(policy(BROKEN)), ...others], [], new Map(), checks);
  expect(snapshot.policies.map(({ metadata }) => metadata.name)).toEqual(["q"]);
  expect(statuses.map(({ name, accepted }) => [name, accepted])).toEqual([
    ["p", false],
    ["q", true],
    ["m", false],
  ]);
  expect(acceptObjects([], [], lastGood, checks).lastGood.size).toBe(0);
});

test("a provider is none until its key is there", () => {
  const without = acceptObjects([declared(provider)], [], new Map(), checks);
  expect(without.snapshot.providers).toEqual([]);
  expect(without.statuses).toMatchObject([{ accepted: true, resolved: false, programmed: false }]);
  const withKey = acceptObjects([declared(provider)], [secret], without.lastGood, checks);
  expect(withKey.snapshot.providers).toHaveLength(1);
  expect(withKey.statuses).toMatchObject([{ accepted: true, resolved: true, programmed: true }]);
});

test("a condition keeps the time of its last change, and tells of the newest generation", () => {
  const status: ObjectStatus = {
    ...{ kind: "InferencePolicy", namespace: "n", name: "p", generation: 1 },
    ...{ accepted: true, resolved: true, programmed: true, problems: [] },
  };
  const first = statusToStore(status, {}, "2026-01-01T00:00:00Z");
  const second = statusToStore({ ...status, generation: 2 }, first, "2026-01-02T00:00:00Z");
  expect(second.conditions?.map((one) => [one.observedGeneration, one.lastTransitionTime])).toEqual(
    Array(3).fill([2, "2026-01-01T00:00:00Z"]),
  );
  expect(sameStatus(first, second)).toBe(false);
  const broken = { ...status, generation: 3, accepted: false, resolved: false, lastGood: policy(GOOD, 2) };
  const third = statusToStore(broken, second, "2026-01-03T00:00:00Z");
  expect(third.conditions?.map((one) => one.lastTransitionTime)).toEqual(Array(3).fill("2026-01-03T00:00:00Z"));
  expect(sameStatus(third, statusToStore(broken, third, "2026-01-04T00:00:00Z"))).toBe(true);
  // Through JSON, as the API server gives it back.
  const stored = JSON.parse(JSON.stringify(third)) as StoredStatus;
  expect(statusBefore(policy(BROKEN, 3), stored)).toEqual({ lastGood: policy(GOOD, 2), wasInUse: true });
});
