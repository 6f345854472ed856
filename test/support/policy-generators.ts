import fc from "fast-check";
import type { InferenceModel } from "../../src/api/inference-model.ts";
import {
  type InferencePolicy,
  KINFERENCE_API,
  type PolicyRule,
  type SelectStage,
} from "../../src/api/inference-policy.ts";
import type { CandidateMatch, ModelSelector, RequestMatch } from "../../src/api/request-match.ts";
import type { NumberRange } from "../../src/api/schema.ts";
import type { Candidate, Verdict } from "../../src/policy/facts.ts";
import { EXPRESSIONS, LABELS, MOMENTS, WINDOWS, type World } from "./naive-policy.ts";

// Random policies, requests and states. Values are few, so that they meet.

const MODELS = ["alpha", "beta-1", "beta-2"];
export const TAGS = ["complexity-low", "pii-detected", "pii-card"];
const NAMES = ["w0", "w1", "p0", "p1"];
const POOLS = ["", "near", "far"];

const some = <T>(values: readonly T[]) => fc.constantFrom(...values);
/** Any of the fields, each with the given chance in eight; at least as often none as one. */
function sparse<T extends object>(fields: { [K in keyof Required<T>]: fc.Arbitrary<T[K]> }, chance = 2) {
  const keys = Object.keys(fields) as (keyof T)[];
  return fc
    .tuple(...keys.map((key) => fc.tuple(fc.nat(7), fields[key])))
    .map(
      (drawn) =>
        Object.fromEntries(
          drawn.flatMap(([dice, value], i) => (dice < chance ? [[keys[i], value]] : [])),
        ) as Partial<T>,
    );
}
const few = <T>(item: fc.Arbitrary<T>, maxLength: number) => fc.array(item, { minLength: 1, maxLength });

const labels = some(LABELS.map(([text]) => text));
const labelSet = some<Record<string, string>>([{}, { tier: "gold" }, { tier: "silver", old: "" }, { tier: "tin" }]);
const modelName = some([...MODELS, "beta*", "*", "*1", "quick", "class/coding", "fam/*"]);
const selector = sparse<ModelSelector>(
  {
    names: few(modelName, 2),
    family: some(["fam", "f*", "none"]),
    capability: some(["coding", "vision"]),
    labels,
  },
  3,
).map((fields) => (Object.keys(fields).length === 0 ? { names: ["alpha"] } : fields));
const modelMatch = fc.oneof(modelName, selector);
const range: fc.Arbitrary<NumberRange> = sparse<NumberRange>({
  greaterThan: some<number | string>([0, 2, "2k"]),
  atLeast: some<number | string>([1, 3]),
  lessThan: some<number | string>([2, "2k"]),
  atMost: some<number | string>([0, 3, "2k"]),
  equals: some<number | string>([1, 2]),
}).map((fields) => (Object.keys(fields).length === 0 ? { atMost: 2 } : fields));
const fraction = sparse<NumberRange>({
  greaterThan: some([0, 0.5]),
  atLeast: some([0.5]),
  lessThan: some([0.5, 1]),
  atMost: some([0, 0.5]),
  equals: some([0, 1]),
}).map((fields) => fields as { atMost?: number });
const durations = sparse<NumberRange>({
  greaterThan: some(["2ms"]),
  atLeast: some<number | string>([2, "1s"]),
  lessThan: some(["2ms", "1s"]),
  atMost: some<number | string>([1, 2]),
  equals: some([1]),
});
const type = some(["Local", "Provider"] as const);
const backend = sparse({ type, name: some([...NAMES, "w*"]), labels }, 3);
const tag = some(TAGS);
const pool = sparse({
  name: some(["near", "far"]),
  queuedPrompts: range,
  runningPrompts: range,
  kvCacheUsage: fraction,
  healthyWorkers: range,
});
const requestMatch = sparse<RequestMatch>(
  {
    model: modelMatch,
    tag,
    tags: few(tag, 2),
    anyTag: few(tag, 2),
    stream: fc.boolean(),
    tools: fc.boolean(),
    images: fc.boolean(),
    tenant: fc.oneof(some(["team-a", "team-*"]), sparse({ name: some(["team-*", "x"]), labels }, 5)),
    api: fc.oneof(some(["chat", "messages"] as const), few(some(["chat", "embeddings"] as const), 2)),
    path: some(["/v1/*", "/v1/messages"]),
    headers: few(
      fc.record({ name: some(["X-Env", "x-none"]), value: some(["prod", "p*"]) }, { requiredKeys: ["name"] }),
      2,
    ),
    promptTokens: range,
    maxTokens: range,
    percent: some([0, 5, 50, 100]),
    pool,
    time: some(WINDOWS.map(([window]) => window)),
    expression: some(EXPRESSIONS.map(([text]) => text)),
  },
  1,
);
const candidateMatch = sparse<CandidateMatch>(
  {
    backend,
    model: modelMatch,
    healthy: fc.boolean(),
    queuedPrompts: range,
    runningPrompts: range,
    kvCacheUsage: fraction,
    predictedTTFT: durations,
    predictedE2E: durations,
    predictedCachedTokens: range,
    errorRate: fraction,
    cost: fraction,
  },
  2,
);
const stage = sparse<SelectStage>(
  {
    type,
    minimize: some([
      "PredictedTTFT",
      "PredictedE2E",
      "QueuedPrompts",
      "RunningPrompts",
      "KVCacheUsage",
      "ErrorRate",
      "Cost",
    ] as const),
    maximize: fc.constant("CachedTokens" as const),
    order: few(some([...NAMES, ...MODELS]), 3),
  },
  4,
).map(({ maximize, ...rest }) => (rest.minimize === undefined && maximize ? { ...rest, maximize } : rest));
const route = sparse<NonNullable<PolicyRule["route"]>>(
  {
    consider: few(fc.record({ models: selector, backend }, { requiredKeys: ["models"] }), 2),
    exclude: fc.array(fc.record({ if: requestMatch, drop: candidateMatch }, { requiredKeys: ["drop"] }), {
      maxLength: 3,
    }),
    select: few(stage, 3),
    onEmpty: some(["Reject", "NextRule"] as const),
    shadow: fc.constant({ model: "alpha" }),
  },
  4,
);
const limit = fc.record({
  per: some(["Tenant", "Model"] as const),
  tokens: some(["Input", "Cost"] as const),
  quantity: fc.constant("2k"),
  window: fc.constant("1m"),
  onExceed: some(["Reject", "NextRule"] as const),
});

const rule = (index: number): fc.Arbitrary<PolicyRule> =>
  fc
    .record({
      matches: fc.option(few(requestMatch, 3), { nil: undefined }),
      action: route,
      limit,
      kind: fc.nat(9),
    })
    .map(({ matches, action, limit, kind }) => ({
      name: `r${index}`,
      ...(matches ? { matches } : {}),
      ...(kind === 0 ? { reject: { message: "no" } } : kind === 1 ? { limit } : { route: action }),
      ...(kind === 2 ? { limit } : {}),
    }));
const policy = (index: number): fc.Arbitrary<InferencePolicy> =>
  fc
    .record({
      priority: some([0, 0, 5]),
      created: some(["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"]),
      rules: fc
        .integer({ min: 1, max: 3 })
        .chain((count) => fc.tuple(...Array.from({ length: count }, (_, i) => rule(i)))),
    })
    .map(({ priority, created, rules }) => ({
      apiVersion: KINFERENCE_API,
      kind: "InferencePolicy",
      metadata: { name: `p${index}`, creationTimestamp: created },
      spec: { priority, rules },
    }));
export const verdict: fc.Arbitrary<Verdict> = some([true, false, undefined]);

const candidate = fc
  .record({
    model: some(MODELS),
    index: fc.nat(3),
    labels: labelSet,
    healthy: some([true, true, true, false]),
    queuedPrompts: some([0, 1, 2, 3, 9, undefined]),
    runningPrompts: some([0, 1, 3, undefined]),
    kvCacheUsage: some([0, 0.5, 1, undefined]),
    errorRate: some([0, 0.5, 1]),
    predictedTtftMs: some([1, 2, 3]),
    predictedE2eMs: some([1, 2, 1000]),
    harmMs: some([0, 1]),
    cachedTokens: some([0, 2, 3, 2000]),
    cost: some([0, 0.5, 1]),
  })
  .map(
    ({ index, ...rest }): Candidate => ({ ...rest, name: NAMES[index] ?? "", type: index < 2 ? "Local" : "Provider" }),
  );

const entry = (name: string): fc.Arbitrary<InferenceModel> =>
  fc
    .record({
      labels: labelSet,
      spec: sparse<InferenceModel["spec"]>(
        {
          family: fc.constant("fam"),
          capabilities: few(some(["coding", "vision"]), 2),
          tier: fc.constant("coding"),
        } as never,
        4,
      ),
    })
    .map(({ labels, spec }) => ({
      apiVersion: KINFERENCE_API,
      kind: "InferenceModel",
      metadata: { name, labels },
      spec: { ...spec, ...(name === "beta-1" ? { aliases: ["quick"] } : {}) },
    }));

const quantity = some([0, 1, 2, 3, 2000, 2001]);
const state = fc.record({
  queuedPrompts: fc.option(quantity, { nil: undefined }),
  runningPrompts: fc.option(quantity, { nil: undefined }),
  kvCacheUsage: some([0, 0.5, 1, undefined]),
  healthyWorkers: fc.option(quantity, { nil: undefined }),
});

export const world: fc.Arbitrary<World> = fc.record({
  policies: fc
    .integer({ min: 0, max: 3 })
    .chain((count) => fc.tuple(...Array.from({ length: count }, (_, i) => policy(i)))),
  models: fc.oneof(fc.constant([]), fc.tuple(...MODELS.map(entry))),
  request: fc.record({
    askedModel: some([...MODELS, ...MODELS, "quick", "class/coding", "fam/*", "nobody-has-it"]),
    api: some(["chat", "messages", "embeddings"]),
    path: some(["/v1/chat/completions", "/v1/messages"]),
    tenant: some(["team-a", "other"]),
    tenantLabels: labelSet,
    stream: fc.boolean(),
    promptTokens: quantity,
    maxTokens: fc.option(quantity, { nil: undefined }),
    tools: fc.boolean(),
    images: fc.boolean(),
    headers: some<Record<string, string>>([{}, { "x-env": "prod" }, { "x-env": "test" }]),
    percent: some([0, 4.9, 5, 99]),
    tags: fc.tuple(verdict, verdict, verdict).map((v) => Object.fromEntries(TAGS.map((name, i) => [name, v[i]]))),
  }),
  moment: fc.nat(MOMENTS.length - 1),
  pools: fc
    .tuple(state, state, state)
    .map((states) => Object.fromEntries(POOLS.map((name, i) => [name, states[i]]))) as fc.Arbitrary<World["pools"]>,
  reached: fc.subarray([0, 1, 2].flatMap((p) => [0, 1, 2].map((r) => `p${p}/r${r}`))),
  candidates: fc.array(candidate, { maxLength: 8 }),
}) as fc.Arbitrary<World>;
