import fc from "fast-check";
import { expect, test } from "vitest";
import type {
  CandidateMatch,
  InferencePolicy,
  NumberRange,
  PolicyRule,
  RequestMatch,
  SelectStage,
} from "../api/inference-policy.ts";
import { compilePolicies } from "./compile.ts";
import { evaluate } from "./evaluate.ts";
import type { Candidate, RequestFacts, Verdict } from "./facts.ts";

// An evaluator written from docs/policies.md alone, sentence by sentence and without regard for speed, must agree with
// the compiled one on random policies, requests and states.

const MODELS = ["alpha", "beta-1", "beta-2"];
const TAGS = ["complexity-low", "pii-detected", "pii-card"];
const NAMES = ["w0", "w1", "p0", "p1"];

interface World {
  policies: InferencePolicy[];
  request: { model: string; tags: Record<string, Verdict>; stream: boolean; promptTokens: number; tenant: string };
  candidates: Candidate[];
}

function glob(pattern: string, text: string): boolean {
  const [head = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return pattern === text;
  // One star is all that the generator makes.
  const tail = rest[0] ?? "";
  return text.length >= head.length + tail.length && text.startsWith(head) && text.endsWith(tail);
}

function names(match: string | { names: string[] }, text: string): boolean {
  return (typeof match === "string" ? [match] : match.names).some((pattern) => glob(pattern, text));
}

function inRange(range: NumberRange, value: number | undefined): Verdict {
  if (value === undefined) return undefined;
  const number = (bound: number | string) => (bound === "2k" ? 2000 : Number(bound));
  if (range.greaterThan !== undefined && !(value > number(range.greaterThan))) return false;
  if (range.atMost !== undefined && !(value <= number(range.atMost))) return false;
  if (range.equals !== undefined && value !== number(range.equals)) return false;
  return true;
}

function all(verdicts: Verdict[]): Verdict {
  return verdicts.includes(false) ? false : verdicts.includes(undefined) ? undefined : true;
}
function any(verdicts: Verdict[]): Verdict {
  return verdicts.includes(true) ? true : verdicts.includes(undefined) ? undefined : false;
}

function requestHolds(match: RequestMatch, { request }: World): Verdict {
  const verdicts: Verdict[] = [];
  if (match.model !== undefined) verdicts.push(names(match.model, request.model));
  if (match.tag !== undefined) verdicts.push(request.tags[match.tag]);
  if (match.tags !== undefined) verdicts.push(all(match.tags.map((tag) => request.tags[tag])));
  if (match.anyTag !== undefined) verdicts.push(any(match.anyTag.map((tag) => request.tags[tag])));
  if (match.stream !== undefined) verdicts.push(request.stream === match.stream);
  if (match.tenant !== undefined) verdicts.push(glob(match.tenant, request.tenant));
  if (match.promptTokens !== undefined) verdicts.push(inRange(match.promptTokens, request.promptTokens));
  return all(verdicts);
}

function candidateHolds(match: CandidateMatch, candidate: Candidate): Verdict {
  const verdicts: Verdict[] = [];
  if (match.backend?.type !== undefined) verdicts.push(candidate.type === match.backend.type);
  if (match.backend?.name !== undefined) verdicts.push(glob(match.backend.name, candidate.name));
  if (match.model !== undefined) verdicts.push(names(match.model, candidate.model));
  if (match.queuedPrompts !== undefined) verdicts.push(inRange(match.queuedPrompts, candidate.queuedPrompts));
  if (match.kvCacheUsage !== undefined) verdicts.push(inRange(match.kvCacheUsage, candidate.kvCacheUsage));
  return all(verdicts);
}

function ranked(stages: SelectStage[], candidates: Candidate[]): Candidate[] {
  const list: Candidate[] = [];
  for (const stage of stages) {
    const place = (c: Candidate) => {
      if (stage.order === undefined) return 0;
      const byName = stage.order.indexOf(c.name);
      return byName >= 0 ? byName : stage.order.indexOf(c.model);
    };
    const value = (c: Candidate) => {
      if (stage.maximize !== undefined) return -c.cachedTokens;
      if (stage.minimize === "QueuedPrompts") return c.queuedPrompts ?? Number.MAX_VALUE;
      if (stage.minimize === "Cost") return c.cost;
      return stage.minimize === undefined ? 0 : c.predictedTtftMs + c.harmMs;
    };
    const kept = candidates.filter((c) => (stage.type === undefined || c.type === stage.type) && place(c) >= 0);
    // A stable sort by three keys, least important first.
    kept.sort((a, b) => a.predictedTtftMs - b.predictedTtftMs);
    kept.sort((a, b) => Math.sign(value(a) - value(b)));
    kept.sort((a, b) => place(a) - place(b));
    for (const candidate of kept) if (!list.includes(candidate)) list.push(candidate);
  }
  return list;
}

const DEFAULT_STAGES: SelectStage[] = [{ type: "Local", minimize: "PredictedTTFT" }];

function runRoute(
  name: string,
  route: NonNullable<PolicyRule["route"]>,
  world: World,
): { text: string; empty: boolean } {
  const having = (model: string) => world.candidates.filter((c) => c.model === model);
  const considered: Candidate[] = [];
  const sources = route.consider ?? [{ models: { names: [world.request.model] } }];
  for (const source of sources) {
    for (const model of source.models.names) {
      for (const c of having(model)) {
        const fits = source.backend === undefined || candidateHolds({ backend: source.backend }, c) === true;
        if (fits && !considered.includes(c)) considered.push(c);
      }
    }
  }
  let left = considered;
  let busy = false;
  for (const exclusion of route.exclude ?? []) {
    if (exclusion.if !== undefined && requestHolds(exclusion.if, world) === false) continue;
    const dropped = left.filter((c) => candidateHolds(exclusion.drop, c) !== false);
    if (exclusion.drop.queuedPrompts ?? exclusion.drop.kvCacheUsage) busy ||= dropped.some((c) => c.healthy);
    left = left.filter((c) => !dropped.includes(c));
  }
  const stages = route.select ?? DEFAULT_STAGES;
  const usable = ranked(
    stages,
    left.filter((c) => c.healthy),
  );
  if (usable.length > 0)
    return { text: `${name}: ${usable.map((c) => `${c.model}@${c.name}`).join(" ")}`, empty: false };
  const cause =
    considered.length === 0
      ? "unknown-model"
      : busy
        ? "overload"
        : ranked(stages, left).length > 0
          ? "unhealthy"
          : "policy";
  return { text: `${name}: ${cause}`, empty: true };
}

function naive(world: World): string {
  const policies = [...world.policies].sort(
    (a, b) => (b.spec.priority ?? 0) - (a.spec.priority ?? 0) || (a.metadata.name < b.metadata.name ? -1 : 1),
  );
  for (const policy of policies) {
    for (const rule of policy.spec.rules) {
      const name = `${policy.metadata.name}/${rule.name}`;
      const holds = rule.matches === undefined ? true : any(rule.matches.map((match) => requestHolds(match, world)));
      if (rule.reject !== undefined) {
        if (holds !== false) return `${name}: rejected`;
        continue;
      }
      if (holds !== true) continue;
      const result = runRoute(name, rule.route ?? {}, world);
      if (result.empty && rule.route?.onEmpty === "NextRule") continue;
      return result.text;
    }
  }
  return runRoute("default", {}, world).text;
}

function compiled(world: World): string {
  const { request } = world;
  const facts: RequestFacts = {
    ...request,
    api: "chat",
    path: "/v1/chat/completions",
    offersTools: false,
    imageCount: 0,
    header: () => undefined,
    hasTag: (tag) => request.tags[tag],
  };
  const rules = compilePolicies(world.policies).flatMap((policy) => policy.rules);
  const decision = evaluate(rules, facts, (model) => world.candidates.filter((c) => c.model === model));
  if (decision.kind === "route")
    return `${decision.rule}: ${decision.ranking.map((c) => `${c.model}@${c.name}`).join(" ")}`;
  return `${decision.rule}: ${decision.kind === "reject" ? "rejected" : decision.cause}`;
}

const some = <T>(values: readonly T[]) => fc.constantFrom(...values);
const optional = <T extends object>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(fields, { requiredKeys: [] }) as fc.Arbitrary<Partial<T>>;
const modelMatch = fc.oneof(
  some([...MODELS, "beta*", "*", "*1"]),
  fc.record({ names: fc.array(some([...MODELS, "*-2"]), { minLength: 1, maxLength: 2 }) }),
);
const range: fc.Arbitrary<NumberRange> = optional({
  greaterThan: some<number | string>([0, 2, "2k"]),
  atMost: some<number | string>([0, 3, "2k"]),
  equals: some([1, 2]),
});
const backend = optional({ type: some(["Local", "Provider"] as const), name: some([...NAMES, "w*"]) });
const requestMatch = optional<RequestMatch>({
  model: modelMatch,
  tag: some(TAGS),
  tags: fc.array(some(TAGS), { minLength: 1, maxLength: 2 }),
  anyTag: fc.array(some(TAGS), { minLength: 1, maxLength: 2 }),
  stream: fc.boolean(),
  tenant: some(["team-a", "team-*"]),
  promptTokens: range,
});
const candidateMatch = optional<CandidateMatch>({
  backend,
  model: modelMatch,
  queuedPrompts: range,
  kvCacheUsage: range,
});
const stage = optional<SelectStage>({
  type: some(["Local", "Provider"] as const),
  minimize: some(["PredictedTTFT", "QueuedPrompts", "Cost"] as const),
  maximize: fc.constant("CachedTokens" as const),
  order: fc.array(some([...NAMES, ...MODELS]), { minLength: 1, maxLength: 3 }),
}).map(({ minimize, maximize, ...rest }) =>
  minimize === undefined ? { ...rest, ...(maximize ? { maximize } : {}) } : { ...rest, minimize },
);
const route = optional<NonNullable<PolicyRule["route"]>>({
  consider: fc.array(
    fc.record(
      { models: fc.record({ names: fc.array(some(MODELS), { minLength: 1, maxLength: 3 }) }), backend },
      { requiredKeys: ["models"] },
    ),
    { minLength: 1, maxLength: 2 },
  ),
  exclude: fc.array(fc.record({ if: requestMatch, drop: candidateMatch }, { requiredKeys: ["drop"] }), {
    maxLength: 3,
  }),
  select: fc.array(stage, { minLength: 1, maxLength: 3 }),
  onEmpty: some(["Reject", "NextRule"] as const),
});
const rule = (index: number): fc.Arbitrary<PolicyRule> => {
  const matches = fc.option(fc.array(requestMatch, { minLength: 1, maxLength: 3 }), { nil: undefined });
  return fc.tuple(matches, route, fc.nat(9)).map(([m, r, kind]) => ({
    name: `r${index}`,
    ...(m ? { matches: m } : {}),
    ...(kind === 0 ? { reject: { message: "no" } } : { route: r }),
  }));
};
const policy = (index: number): fc.Arbitrary<InferencePolicy> =>
  fc
    .record({
      priority: some([0, 0, 5]),
      rules: fc
        .integer({ min: 1, max: 4 })
        .chain((count) => fc.tuple(...Array.from({ length: count }, (_, i) => rule(i)))),
    })
    .map((spec) => ({ apiVersion: "", kind: "InferencePolicy", metadata: { name: `p${index}` }, spec }));
const verdict: fc.Arbitrary<Verdict> = some([true, false, undefined]);
const candidate = fc
  .record({
    model: some(MODELS),
    index: fc.nat(3),
    healthy: fc.boolean(),
    queuedPrompts: some([0, 1, 2, 3, 9, undefined]),
    kvCacheUsage: some([0, 1, 3, undefined]),
    predictedTtftMs: some([1, 2, 3]),
    harmMs: some([0, 1]),
    cachedTokens: some([0, 16, 32]),
    cost: some([0, 1]),
  })
  .map(
    ({ index, ...rest }): Candidate => ({
      ...rest,
      name: NAMES[index] ?? "",
      type: index < 2 ? "Local" : "Provider",
      runningPrompts: 0,
      predictedE2eMs: 1,
    }),
  );
const world: fc.Arbitrary<World> = fc.record({
  policies: fc
    .integer({ min: 0, max: 3 })
    .chain((count) => fc.tuple(...Array.from({ length: count }, (_, i) => policy(i)))),
  request: fc.record({
    model: some([...MODELS, "nobody-has-it"]),
    tags: fc
      .tuple(verdict, verdict, verdict)
      .map((verdicts) => Object.fromEntries(TAGS.map((tag, i) => [tag, verdicts[i]]))),
    stream: fc.boolean(),
    promptTokens: some([0, 1, 2, 3, 2000, 2001]),
    tenant: some(["team-a", "other"]),
  }),
  candidates: fc.array(candidate, { maxLength: 8 }),
});

test("agrees with the document, read literally", { timeout: 120_000 }, () => {
  fc.assert(
    fc.property(world, (w) => {
      expect(compiled(w)).toBe(naive(w));
    }),
    { numRuns: 20_000 },
  );
});

test("whatever else is declared, a guard that comes first lets no marked prompt out", { timeout: 120_000 }, () => {
  const guard: InferencePolicy = {
    apiVersion: "",
    kind: "InferencePolicy",
    metadata: { name: "a-guard" },
    spec: {
      priority: 100,
      rules: [
        {
          name: "inside",
          route: {
            exclude: [{ if: { tag: "pii-detected" }, drop: { backend: { type: "Provider" } } }],
            select: [
              { type: "Provider", order: ["p0", "p1"] },
              { type: "Local", minimize: "PredictedTTFT" },
            ],
          },
        },
      ],
    },
  };
  fc.assert(
    fc.property(world, verdict, (w, marked) => {
      const guarded = {
        ...w,
        policies: [...w.policies, guard],
        request: { ...w.request, tags: { ...w.request.tags, "pii-detected": marked } },
      };
      if (marked === false) return;
      expect(compiled(guarded)).not.toMatch(/@p\d/);
    }),
    { numRuns: 20_000 },
  );
});
