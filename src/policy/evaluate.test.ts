import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { InferencePolicy, PolicyRule } from "../api/inference-policy.ts";
import { compilePolicies } from "./compile.ts";
import { evaluate } from "./evaluate.ts";
import type { Candidate, RequestFacts } from "./facts.ts";

const candidate = (name: string, more: Partial<Candidate> = {}): Candidate => ({
  model: "glm-5.3",
  type: "Local",
  name,
  healthy: true,
  queuedPrompts: 0,
  runningPrompts: 0,
  kvCacheUsage: 0,
  predictedTtftMs: 100,
  predictedE2eMs: 1000,
  harmMs: 0,
  cachedTokens: 0,
  cost: 0,
  ...more,
});
const provider = (name: string, more: Partial<Candidate> = {}) =>
  candidate(name, {
    type: "Provider",
    queuedPrompts: undefined,
    runningPrompts: undefined,
    kvCacheUsage: undefined,
    predictedTtftMs: 800,
    ...more,
  });

const facts = (more: Partial<RequestFacts> & { tags?: Record<string, boolean | undefined> } = {}): RequestFacts => ({
  api: "chat",
  path: "/v1/chat/completions",
  model: "glm-5.3",
  tenant: "default",
  stream: false,
  promptTokens: 100,
  offersTools: false,
  imageCount: 0,
  header: () => undefined,
  hasTag: (tag) => (more.tags && tag in more.tags ? more.tags[tag] : false),
  ...more,
});

function shipped(name: string) {
  const policy = parse(
    readFileSync(new URL(`../../docs/policies/${name}.yaml`, import.meta.url), "utf8"),
  ) as InferencePolicy;
  return compilePolicies([policy]).flatMap((p) => p.rules);
}

function rules(...list: PolicyRule[]) {
  return compilePolicies([
    { apiVersion: "", kind: "InferencePolicy", metadata: { name: "p" }, spec: { rules: list } },
  ]).flatMap((p) => p.rules);
}

/** The outcome in a line: `rule: a > b > c`, or why not. */
function outcome(compiled: ReturnType<typeof rules>, request: RequestFacts, candidates: Candidate[]): string {
  const decision = evaluate(compiled, request, (model) => candidates.filter((c) => c.model === model));
  if (decision.kind === "route") return `${decision.rule}: ${decision.ranking.map((c) => c.name).join(" > ")}`;
  return decision.kind === "reject"
    ? `${decision.rule}: rejected ${decision.reject.status ?? 403}`
    : `${decision.rule}: ${decision.cause}`;
}

describe("burst-policy: providers get what exceeds two queued prompts per worker, and nothing before", () => {
  const burst = shipped("burst-policy");
  const outside = [provider("databricks"), provider("bedrock"), provider("other")];
  test.each<[name: string, candidates: Candidate[], expected: string]>([
    ["idle", [candidate("a"), candidate("b", { predictedTtftMs: 50 }), ...outside], "b > a > bedrock > databricks"],
    ["two queued is not more than two", [candidate("a", { queuedPrompts: 2 }), ...outside], "a > bedrock > databricks"],
    [
      "three queued on one",
      [candidate("a", { queuedPrompts: 3, predictedTtftMs: 1 }), candidate("b"), ...outside],
      "b > bedrock > databricks",
    ],
    [
      "three queued on all",
      [candidate("a", { queuedPrompts: 3 }), candidate("b", { queuedPrompts: 9 }), ...outside],
      "bedrock > databricks",
    ],
    ["all down", [candidate("a", { healthy: false }), ...outside], "bedrock > databricks"],
    ["only one provider", [candidate("a", { queuedPrompts: 3 }), provider("databricks")], "databricks"],
    ["a provider that is not named", [candidate("a", { queuedPrompts: 3 }), provider("other")], "overload"],
    ["overloaded without providers", [candidate("a", { queuedPrompts: 3 })], "overload"],
    ["down without providers", [candidate("a", { healthy: false })], "unhealthy"],
    ["a model nobody has", [candidate("a", { model: "x" })], "unknown-model"],
  ])("%s", (_name, candidates, expected) => {
    expect(outcome(burst, facts(), candidates)).toBe(`burst-policy/burst-to-cloud: ${expected}`);
  });
});

describe("pii-stays-local: a marked prompt never leaves", () => {
  const pii = shipped("pii-stays-local");
  const all = [candidate("a"), provider("databricks"), provider("bedrock")];
  test.each<[name: string, tag: boolean | undefined, candidates: Candidate[], expected: string]>([
    ["clean", false, all, "databricks > a"],
    ["marked", true, all, "a"],
    ["cannot be told", undefined, all, "a"],
    ["marked, worker down", true, [candidate("a", { healthy: false }), provider("databricks")], "unhealthy"],
    [
      "cannot be told, worker down",
      undefined,
      [candidate("a", { healthy: false }), provider("databricks")],
      "unhealthy",
    ],
    ["marked, only a provider has the model", true, [provider("databricks")], "policy"],
    ["clean, provider only", false, [provider("databricks")], "databricks"],
    ["clean, worker down", false, [candidate("a", { healthy: false }), provider("databricks")], "databricks"],
    ["clean, only a provider that is not named", false, [provider("bedrock")], "policy"],
  ])("%s", (_name, tag, candidates, expected) => {
    expect(outcome(pii, facts({ tags: { "pii-detected": tag } }), candidates)).toBe(
      `pii-stays-local/serve: ${expected}`,
    );
  });
});

describe("smart-semantic-routing: easy prompts may go to the smaller model", () => {
  const smart = shipped("smart-semantic-routing");
  const rule = "smart-semantic-routing/low-complexity-consider-qwen";
  const models = [candidate("glm-0"), candidate("qwen-0", { model: "qwen-3.6-27b", predictedTtftMs: 40 })];
  test.each<[name: string, request: RequestFacts, candidates: Candidate[], expected: string]>([
    ["easy", facts({ tags: { "complexity-low": true } }), models, `${rule}: qwen-0 > glm-0`],
    ["hard", facts(), models, "default: glm-0"],
    ["cannot be told", facts({ tags: { "complexity-low": undefined } }), models, "default: glm-0"],
    [
      "easy, another model",
      facts({ model: "qwen-3.6-27b", tags: { "complexity-low": true } }),
      models,
      "default: qwen-0",
    ],
    [
      "easy, the smaller one is slower",
      facts({ tags: { "complexity-low": true } }),
      [candidate("glm-0", { predictedTtftMs: 10 }), ...models.slice(1)],
      `${rule}: glm-0 > qwen-0`,
    ],
    [
      "easy, the smaller one harms others",
      facts({ tags: { "complexity-low": true } }),
      [candidate("glm-0"), candidate("qwen-0", { model: "qwen-3.6-27b", predictedTtftMs: 40, harmMs: 100 })],
      `${rule}: glm-0 > qwen-0`,
    ],
    [
      "easy, the smaller one is down",
      facts({ tags: { "complexity-low": true } }),
      [candidate("glm-0"), candidate("qwen-0", { model: "qwen-3.6-27b", healthy: false })],
      `${rule}: glm-0`,
    ],
  ])("%s", (_name, request, candidates, expected) => {
    expect(outcome(smart, request, candidates)).toBe(expected);
  });
});

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
    [
      { headers: [{ name: "X-Env", value: "prod*" }] },
      facts({ header: (n) => (n === "x-env" ? "production" : undefined) }),
      true,
    ],
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
  const order = compilePolicies([
    policy("b"),
    policy("young", 5, "2026-02-01T00:00:00Z"),
    policy("a"),
    policy("old", 5, "2026-01-01T00:00:00Z"),
    policy("low", -1),
  ]);
  expect(order.map((p) => p.key)).toEqual(["default/old", "default/young", "default/a", "default/b", "default/low"]);
});
