import { describe, expect, test } from "vitest";
import { candidate, compileRules, facts, outcome, policyOf, provider } from "../../test/support/policy-world.ts";
import type { InferencePolicy, PolicyRule } from "../api/inference-policy.ts";
import { compilePolicies } from "./compile.ts";
import type { RequestFacts } from "./facts.ts";
import { ModelCatalogue } from "./model-catalogue.ts";

const rules = (...list: PolicyRule[]) => compileRules([policyOf(list)]);

describe("matches", () => {
  const deny = { message: "no" };
  test.each<[match: NonNullable<PolicyRule["matches"]>[number], request: RequestFacts, holds: boolean]>([
    [{ model: "glm-*" }, facts(), true],
    [{ model: "glm.5" }, facts(), false],
    [{ model: { names: ["a", "*-5.3"] } }, facts(), true],
    [{ tenant: "team-*" }, facts({ tenant: "team-a" }), true],
    [{ api: ["chat", "messages"] }, facts({ api: "messages" }), true],
    [{ api: "messages" }, facts(), false],
    [{ path: "/v1/chat/*" }, facts(), true],
    [{ headers: [{ name: "X-Env", value: "prod*" }] }, facts({ headers: new Map([["x-env", "production"]]) }), true],
    [{ headers: [{ name: "x-env" }] }, facts(), false],
    [{ stream: true }, facts(), false],
    [{ promptTokens: { greaterThan: "32k" } }, facts({ promptTokens: 32_001 }), true],
    [{ promptTokens: { greaterThan: "32k" } }, facts({ promptTokens: 32_000 }), false],
    [{ promptTokens: { atLeast: 10, atMost: 100 } }, facts(), true],
    [{ maxTokens: { lessThan: 10 } }, facts(), false],
    [{ maxTokens: { lessThan: 10 } }, facts({ maxTokens: 9 }), true],
    [{ tools: true, images: false }, facts({ offersTools: true }), true],
    [{ tags: ["a", "b"] }, facts({ tags: { a: true, b: true } }), true],
    [{ tags: ["a", "b"] }, facts({ tags: { a: true } }), false],
    [{ anyTag: ["a", "b"] }, facts({ tags: { b: true } }), true],
    // A refusal whose condition cannot be told refuses.
    [{ tag: "a" }, facts({ tags: { a: undefined } }), true],
    [{ tag: "a", stream: true }, facts({ tags: { a: undefined } }), false],
    [{ anyTag: ["a", "b"] }, facts({ tags: { a: undefined } }), true],
  ])("%j", (match, request, holds) => {
    const compiled = rules({ name: "deny", matches: [match], reject: deny });
    expect(outcome(compiled, request, [candidate("a")])).toBe(holds ? "p/deny: rejected 403" : "default: a");
  });
});

describe("routes", () => {
  const local = [
    candidate("a", { predictedTtftMs: 10 }),
    candidate("b", { predictedTtftMs: 20, cachedTokens: 500, queuedPrompts: 1, kvCacheUsage: 0.9 }),
  ];
  test.each<[name: string, route: NonNullable<PolicyRule["route"]>, expected: string]>([
    ["by default nothing leaves", {}, "p/r: a > b"],
    ["cached tokens", { select: [{ maximize: "CachedTokens" }] }, "p/r: b > a > x"],
    ["cost", { select: [{ type: "Provider", minimize: "Cost" }] }, "p/r: x"],
    ["names in order", { select: [{ order: ["x", "b"] }] }, "p/r: x > b"],
    ["model names in order", { select: [{ type: "Local", order: ["glm-5.3"] }] }, "p/r: a > b"],
    ["drop by usage", { exclude: [{ drop: { kvCacheUsage: { atLeast: 0.9 } } }] }, "p/r: a"],
    ["drop by name", { exclude: [{ drop: { backend: { name: "a" } } }] }, "p/r: b"],
    ["drop only if", { exclude: [{ if: { stream: true }, drop: { backend: { name: "a" } } }] }, "p/r: a > b"],
    ["drop by predicted TTFT", { exclude: [{ drop: { predictedTTFT: { greaterThan: "15ms" } } }] }, "p/r: a"],
    ["forbidden", { exclude: [{ drop: { backend: { type: "Local" } } }] }, "p/r: policy"],
    [
      "forbidden, then the next rule",
      { exclude: [{ drop: { backend: { type: "Local" } } }], onEmpty: "NextRule" },
      "default: a > b",
    ],
    [
      "considered backends",
      { consider: [{ models: { names: ["glm-5.3"] }, backend: { type: "Provider" } }], select: [{ minimize: "Cost" }] },
      "p/r: x",
    ],
  ])("%s", (_name, route, expected) => {
    expect(outcome(rules({ name: "r", route }), facts(), [...local, provider("x")])).toBe(expected);
  });
});

test("policies are tried by priority, then age, then name", () => {
  const policy = (name: string, priority?: number, creationTimestamp?: string): InferencePolicy => ({
    apiVersion: "",
    kind: "InferencePolicy",
    metadata: { name, ...(creationTimestamp ? { creationTimestamp } : {}) },
    spec: { ...(priority === undefined ? {} : { priority }), rules: [{ name: "r", reject: { message: "" } }] },
  });
  const order = compilePolicies(
    [
      policy("b"),
      policy("young", 5, "2026-02-01T00:00:00Z"),
      policy("a"),
      policy("old", 5, "2026-01-01T00:00:00Z"),
      policy("low", -1),
    ],
    new ModelCatalogue([]),
  );
  expect(order.map((p) => p.key)).toEqual(["default/old", "default/young", "default/a", "default/b", "default/low"]);
});
