import fc from "fast-check";
import { expect, test } from "vitest";
import type { World } from "../../test/support/naive-policy.ts";
import { verdict, world } from "../../test/support/policy-generators.ts";
import { compiledOutcome, policyOf } from "../../test/support/policy-world.ts";
import type { InferencePolicy, PolicyRule } from "../api/inference-policy.ts";
import { ModelCatalogue } from "../policy/model-catalogue.ts";
import { buildSnapshot, type Snapshot } from "../resources/snapshot.ts";
import { egressOf } from "./egress.ts";
import { lint } from "./lint.ts";
import { knownNames } from "./names.ts";
import { allRules } from "./scoped-rules.ts";

// What lint claims to have proved must hold for whatever request and state.

const RUNS = { numRuns: 20_000 };

function snapshotOf({ policies, models }: Pick<World, "policies" | "models">): Snapshot {
  return buildSnapshot([...policies, ...models]);
}

const decidingRule = (outcome: string) => outcome.slice(0, outcome.indexOf(": "));

test("a rule that is called hidden never decides", { timeout: 300_000 }, () => {
  fc.assert(
    fc.property(world, (w) => {
      const snapshot = snapshotOf(w);
      const hidden = lint(snapshot, knownNames(snapshot)).filter(({ code }) => code === "rule-hidden");
      const decided = decidingRule(compiledOutcome(w));
      for (const { message } of hidden) expect(message.startsWith(`${decided} `)).toBe(false);
    }),
    RUNS,
  );
});

test("whatever leaves the cluster leaves by a way that is shown", { timeout: 300_000 }, () => {
  fc.assert(
    fc.property(world, (w) => {
      const outcome = compiledOutcome(w);
      if (!/@p\d/.test(outcome)) return;
      const snapshot = snapshotOf(w);
      const placed = allRules(snapshot).find(({ name }) => name === decidingRule(outcome));
      if (placed === undefined) throw new Error(`by no rule: ${outcome}`);
      expect(egressOf(placed.rule, snapshot, new ModelCatalogue(w.models))).toBeDefined();
    }),
    RUNS,
  );
});

const GUARDS: PolicyRule[] = [
  { name: "g", matches: [{ tag: "pii-detected" }], reject: { message: "no" } },
  { name: "g", matches: [{ tag: "pii-detected" }], route: {} },
  { name: "g", route: { exclude: [{ if: { tag: "pii-detected" }, drop: { backend: { type: "Provider" } } }] } },
  {
    name: "g",
    route: {
      exclude: [{ if: { anyTag: ["pii-detected", "pii-card"] }, drop: { backend: { type: "Provider" } } }],
      select: [{ minimize: "Cost" }],
      onEmpty: "NextRule",
    },
  },
];
const guard: fc.Arbitrary<InferencePolicy> = fc
  .tuple(fc.constantFrom(...GUARDS), fc.constantFrom(-1, 1, 10, 10, 10))
  .map(([rule, priority]) => policyOf([rule], "guard", { priority }));

test("a guard that is not called defeated lets nothing out", { timeout: 300_000 }, () => {
  let sound = 0;
  fc.assert(
    fc.property(world, guard, verdict, (w, own, marked) => {
      if (marked === false) return;
      const policies = [...w.policies, own];
      const snapshot = snapshotOf({ ...w, policies });
      const about = lint(snapshot, knownNames(snapshot)).filter(({ message }) => message.includes("`pii-detected`"));
      if (about.some(({ code }) => code === "guard-defeated")) return;
      if (marked === undefined && about.some(({ code }) => code === "guard-fails-open")) return;
      sound++;
      const request = { ...w.request, tags: { ...w.request.tags, "pii-detected": marked } };
      expect(compiledOutcome({ ...w, policies, request })).not.toMatch(/@p\d/);
    }),
    RUNS,
  );
  expect(sound).toBeGreaterThan(1000);
});
