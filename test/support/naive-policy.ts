import type { InferenceModel } from "../../src/api/inference-model.ts";
import type { InferencePolicy, PolicyRule, SelectStage } from "../../src/api/inference-policy.ts";
import type { CandidateMatch, ModelSelector, PoolMatch, RequestMatch } from "../../src/api/request-match.ts";
import type { NumberRange } from "../../src/api/schema.ts";
import type { Candidate, PoolState, Verdict } from "../../src/policy/facts.ts";

// The policy engine written a second time, from docs/policies.md alone: sentence by sentence, without regard for speed,
// and sharing nothing with the first.

/** All that a decision depends on. */
export interface World {
  policies: InferencePolicy[];
  models: InferenceModel[];
  request: {
    askedModel: string;
    api: string;
    path: string;
    tenant: string;
    tenantLabels: Record<string, string>;
    stream: boolean;
    promptTokens: number;
    maxTokens: number | undefined;
    tools: boolean;
    images: boolean;
    headers: Record<string, string>;
    percent: number;
    tags: Record<string, Verdict>;
  };
  /** One of MOMENTS. */
  moment: number;
  pools: Record<string, PoolState>;
  /** Names of limits that are reached. */
  reached: string[];
  candidates: Candidate[];
}

/** A window in words, and whether it is open on Wednesday 2027-03-03 12:00, Saturday 2027-03-06 23:30 and Monday 00:30 (UTC). */
export const MOMENTS = [Date.UTC(2027, 2, 3, 12, 0), Date.UTC(2027, 2, 6, 23, 30), Date.UTC(2027, 2, 8, 0, 30)];
export const WINDOWS: [window: NonNullable<RequestMatch["time"]>, open: [boolean, boolean, boolean]][] = [
  [{ days: ["mon-fri"], from: "08:00", to: "18:00" }, [true, false, false]],
  [{ from: "22:00", to: "06:00" }, [false, true, true]],
  [{ days: ["sun"], from: "22:00", to: "06:00" }, [false, false, true]],
  [{ dates: ["03-06"] }, [false, true, false]],
  [{ days: ["sun"], timeZone: "Europe/Zurich" }, [false, true, false]],
];

/** Expressions with what they say. */
export const EXPRESSIONS: [expression: string, holds: (world: World, model: string) => Verdict][] = [
  ["promptTokens > 2 && !stream", ({ request }) => request.promptTokens > 2 && !request.stream],
  ["hasTag('pii-detected') || tools", ({ request }) => any([request.tags["pii-detected"], request.tools])],
  ["model.startsWith('beta')", (_, model) => model.startsWith("beta")],
  ["'tier' in tenantLabels && tenantLabels.tier == 'gold'", ({ request }) => request.tenantLabels.tier === "gold"],
  // A field that a map does not have cannot be told.
  [
    "headers['x-env'] == 'prod'",
    ({ request }) => (request.headers["x-env"] === undefined ? undefined : request.headers["x-env"] === "prod"),
  ],
  ["maxTokens <= 3", ({ request }) => request.maxTokens !== undefined && request.maxTokens <= 3],
];

/** Label expressions with what they say. */
export const LABELS: [expression: string, holds: (labels: Readonly<Record<string, string>>) => boolean][] = [
  ["tier=gold", (labels) => labels.tier === "gold"],
  ["tier in (gold, silver)", (labels) => labels.tier === "gold" || labels.tier === "silver"],
  ["tier!=gold,!old", (labels) => labels.tier !== "gold" && !("old" in labels)],
  ["old", (labels) => "old" in labels],
];

function labelsHold(expression: string, labels: Readonly<Record<string, string>>): boolean {
  return LABELS.find(([text]) => text === expression)?.[1](labels) === true;
}

export function all(verdicts: Verdict[]): Verdict {
  return verdicts.includes(false) ? false : verdicts.includes(undefined) ? undefined : true;
}
export function any(verdicts: Verdict[]): Verdict {
  return verdicts.includes(true) ? true : verdicts.includes(undefined) ? undefined : false;
}

/** One star is all that the generator makes. */
function glob(pattern: string, text: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return pattern === text;
  const [head, tail] = [pattern.slice(0, star), pattern.slice(star + 1)];
  return text.length >= head.length + tail.length && text.startsWith(head) && text.endsWith(tail);
}

const AMOUNTS: Record<string, number> = { "2k": 2000, "2ms": 2, "1s": 1000 };

function inRange(range: NumberRange, value: number | undefined): Verdict {
  if (value === undefined) return undefined;
  const number = (bound: number | string) => (typeof bound === "string" ? (AMOUNTS[bound] ?? Number(bound)) : bound);
  if (range.greaterThan !== undefined && !(value > number(range.greaterThan))) return false;
  if (range.atLeast !== undefined && !(value >= number(range.atLeast))) return false;
  if (range.lessThan !== undefined && !(value < number(range.lessThan))) return false;
  if (range.atMost !== undefined && !(value <= number(range.atMost))) return false;
  return range.equals === undefined || value === number(range.equals);
}

const nameOf = (entry: InferenceModel) => entry.spec.modelName ?? entry.metadata.name;

/** The models that a name stands for: itself, an alias's, a class's. */
export function meaning(name: string, models: readonly InferenceModel[]): string[] {
  const aliased = models.find((entry) => entry.spec.aliases?.includes(name));
  if (aliased !== undefined) return [nameOf(aliased)];
  if (models.length > 0 && name.startsWith("class/")) {
    const wanted = name.slice("class/".length);
    return models.filter(({ spec }) => spec.capabilities?.includes(wanted) || spec.tier === wanted).map(nameOf);
  }
  if (models.length > 0 && name.endsWith("/*"))
    return models.filter(({ spec }) => spec.family === name.slice(0, -2)).map(nameOf);
  return [name];
}

function modelHolds(selector: string | ModelSelector, model: string, world: World): boolean {
  const named = (name: string) => glob(name, model) || meaning(name, world.models).includes(model);
  if (typeof selector === "string") return named(selector);
  const entry = world.models.find((one) => nameOf(one) === model);
  const { names, family, capability, labels } = selector;
  if (names !== undefined && !names.some(named)) return false;
  if (family !== undefined && !glob(family, entry?.spec.family ?? "")) return false;
  if (capability !== undefined && entry?.spec.capabilities?.includes(capability) !== true) return false;
  return labels === undefined || labelsHold(labels, entry?.metadata.labels ?? {});
}

function poolHolds(match: PoolMatch, { pools }: World): Verdict {
  const state = pools[match.name ?? ""] ?? {};
  return all(
    (["queuedPrompts", "runningPrompts", "kvCacheUsage", "healthyWorkers"] as const).flatMap((field) => {
      const range = match[field];
      return range === undefined ? [] : [inRange(range, (state as Partial<PoolState>)[field])];
    }),
  );
}

export function requestHolds(match: RequestMatch, world: World, model: string): Verdict {
  const { request } = world;
  const verdicts: Verdict[] = [];
  if (match.model !== undefined)
    verdicts.push(modelHolds(match.model, model, world) || modelHolds(match.model, request.askedModel, world));
  if (match.tag !== undefined) verdicts.push(request.tags[match.tag]);
  if (match.tags !== undefined) verdicts.push(all(match.tags.map((tag) => request.tags[tag])));
  if (match.anyTag !== undefined) verdicts.push(any(match.anyTag.map((tag) => request.tags[tag])));
  if (match.stream !== undefined) verdicts.push(request.stream === match.stream);
  if (match.tools !== undefined) verdicts.push(request.tools === match.tools);
  if (match.images !== undefined) verdicts.push(request.images === match.images);
  if (typeof match.tenant === "string") verdicts.push(glob(match.tenant, request.tenant));
  if (typeof match.tenant === "object") {
    if (match.tenant.name !== undefined) verdicts.push(glob(match.tenant.name, request.tenant));
    if (match.tenant.labels !== undefined) verdicts.push(labelsHold(match.tenant.labels, request.tenantLabels));
  }
  if (match.api !== undefined) verdicts.push([match.api].flat().includes(request.api as never));
  if (match.path !== undefined) verdicts.push(glob(match.path, request.path));
  for (const { name, value } of match.headers ?? []) {
    const sent = request.headers[name.toLowerCase()];
    verdicts.push(sent !== undefined && (value === undefined || glob(value, sent)));
  }
  if (match.promptTokens !== undefined) verdicts.push(inRange(match.promptTokens, request.promptTokens));
  // A request without a cap has no upper bound.
  if (match.maxTokens !== undefined) verdicts.push(inRange(match.maxTokens, request.maxTokens ?? Number.MAX_VALUE));
  if (match.percent !== undefined) verdicts.push(request.percent < match.percent);
  if (match.pool !== undefined) verdicts.push(poolHolds(match.pool, world));
  if (match.time !== undefined) verdicts.push(WINDOWS.find(([w]) => w === match.time)?.[1][world.moment]);
  if (match.expression !== undefined)
    verdicts.push(EXPRESSIONS.find(([text]) => text === match.expression)?.[1](world, model));
  return all(verdicts);
}

export function candidateHolds(match: CandidateMatch, candidate: Candidate, world: World): Verdict {
  const verdicts: Verdict[] = [];
  if (match.backend?.type !== undefined) verdicts.push(candidate.type === match.backend.type);
  if (match.backend?.name !== undefined) verdicts.push(glob(match.backend.name, candidate.name));
  if (match.backend?.labels !== undefined) verdicts.push(labelsHold(match.backend.labels, candidate.labels));
  if (match.model !== undefined) verdicts.push(modelHolds(match.model, candidate.model, world));
  if (match.healthy !== undefined) verdicts.push(candidate.healthy === match.healthy);
  if (match.queuedPrompts !== undefined) verdicts.push(inRange(match.queuedPrompts, candidate.queuedPrompts));
  if (match.runningPrompts !== undefined) verdicts.push(inRange(match.runningPrompts, candidate.runningPrompts));
  if (match.kvCacheUsage !== undefined) verdicts.push(inRange(match.kvCacheUsage, candidate.kvCacheUsage));
  if (match.predictedTTFT !== undefined) verdicts.push(inRange(match.predictedTTFT, candidate.predictedTtftMs));
  if (match.predictedE2E !== undefined) verdicts.push(inRange(match.predictedE2E, candidate.predictedE2eMs));
  if (match.predictedCachedTokens !== undefined)
    verdicts.push(inRange(match.predictedCachedTokens, candidate.cachedTokens));
  if (match.errorRate !== undefined) verdicts.push(inRange(match.errorRate, candidate.errorRate));
  if (match.cost !== undefined) verdicts.push(inRange(match.cost, candidate.cost));
  return all(verdicts);
}

/** Least first. */
function measure(stage: SelectStage, c: Candidate): number {
  if (stage.maximize === "CachedTokens") return -c.cachedTokens;
  switch (stage.minimize) {
    case "PredictedTTFT":
      return c.predictedTtftMs + c.harmMs;
    case "PredictedE2E":
      return c.predictedE2eMs + c.harmMs;
    case "QueuedPrompts":
      return c.queuedPrompts ?? Number.MAX_VALUE;
    case "RunningPrompts":
      return c.runningPrompts ?? Number.MAX_VALUE;
    case "KVCacheUsage":
      return c.kvCacheUsage ?? Number.MAX_VALUE;
    case "ErrorRate":
      return c.errorRate;
    case "Cost":
      return c.cost;
    default:
      return 0;
  }
}

function ranked(stages: SelectStage[], candidates: Candidate[]): Candidate[] {
  const list: Candidate[] = [];
  for (const stage of stages) {
    const place = (c: Candidate) => {
      if (stage.order === undefined) return 0;
      const byName = stage.order.indexOf(c.name);
      return byName >= 0 ? byName : stage.order.indexOf(c.model);
    };
    const kept = candidates.filter((c) => (stage.type === undefined || c.type === stage.type) && place(c) >= 0);
    // A stable sort by three keys, least important first.
    kept.sort((a, b) => a.predictedTtftMs - b.predictedTtftMs);
    kept.sort((a, b) => Math.sign(measure(stage, a) - measure(stage, b)));
    kept.sort((a, b) => place(a) - place(b));
    for (const candidate of kept) if (!list.includes(candidate)) list.push(candidate);
  }
  return list;
}

interface Answer {
  text: string;
  /** Of the best candidate. */
  best?: Candidate | undefined;
  /** Absent for a route; otherwise how little it helps to wait. */
  hopelessness?: number;
  empty?: boolean;
}

const HOPELESSNESS = { overload: 1, unhealthy: 3, policy: 5, "unknown-model": 6 };

function runRoute(name: string, route: NonNullable<PolicyRule["route"]>, world: World, model: string): Answer {
  const served = [...new Set(world.candidates.map((c) => c.model))];
  const considered: Candidate[] = [];
  for (const source of route.consider ?? [undefined]) {
    // Names are taken in the order written; whatever else is searched for, in the order of what is served.
    const { names, ...search } = source?.models ?? {};
    const plain = names !== undefined && Object.keys(search).length === 0 && !names.some((n) => n.includes("*"));
    const meant = source === undefined ? [model] : (names ?? []).flatMap((n) => meaning(n, world.models));
    const models = source === undefined || plain ? meant : served.filter((m) => modelHolds(source.models, m, world));
    for (const m of models) {
      for (const c of world.candidates.filter((one) => one.model === m)) {
        const fits = source?.backend === undefined || candidateHolds({ backend: source.backend }, c, world) === true;
        if (fits && !considered.includes(c)) considered.push(c);
      }
    }
  }
  let left = considered;
  let busy = false;
  for (const exclusion of route.exclude ?? []) {
    if (exclusion.if !== undefined && requestHolds(exclusion.if, world, model) === false) continue;
    const dropped = left.filter((c) => candidateHolds(exclusion.drop, c, world) !== false);
    const { queuedPrompts, runningPrompts, kvCacheUsage, predictedTTFT, predictedE2E } = exclusion.drop;
    if (queuedPrompts || runningPrompts || kvCacheUsage || predictedTTFT || predictedE2E)
      busy ||= dropped.some((c) => c.healthy);
    left = left.filter((c) => !dropped.includes(c));
  }
  // Where a rule says nothing, traffic stays inside.
  const stages = route.select ?? [{ type: "Local" as const, minimize: "PredictedTTFT" as const }];
  const usable = ranked(
    stages,
    left.filter((c) => c.healthy),
  );
  if (usable.length > 0)
    return { text: `${name}: ${usable.map((c) => `${c.model}@${c.name}`).join(" ")}`, best: usable[0] };
  const cause =
    considered.length === 0
      ? "unknown-model"
      : busy
        ? "overload"
        : ranked(stages, left).length > 0
          ? "unhealthy"
          : "policy";
  return { text: `${name}: ${cause}`, empty: true, hopelessness: HOPELESSNESS[cause] };
}

function decideFor(world: World, model: string): Answer {
  const policies = [...world.policies].sort(
    (a, b) =>
      (b.spec.priority ?? 0) - (a.spec.priority ?? 0) ||
      (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? "") ||
      (a.metadata.name < b.metadata.name ? -1 : 1),
  );
  for (const policy of policies) {
    for (const rule of policy.spec.rules) {
      const name = `${policy.metadata.name}/${rule.name}`;
      const holds = rule.matches === undefined ? true : any(rule.matches.map((m) => requestHolds(m, world, model)));
      if (rule.reject !== undefined) {
        if (holds !== false) return { text: `${name}: rejected`, hopelessness: 4 };
        continue;
      }
      // A rule that only charges restricts: unknown counts as true.
      if (holds === false || (holds === undefined && rule.route !== undefined)) continue;
      if (rule.limit !== undefined && world.reached.includes(name)) {
        if (rule.limit.onExceed === "NextRule") continue;
        return { text: `${name}: limited`, hopelessness: 2 };
      }
      if (rule.route === undefined) continue;
      const answer = runRoute(name, rule.route, world, model);
      if (answer.empty && rule.route.onEmpty === "NextRule") continue;
      return answer;
    }
  }
  return runRoute("default", {}, world, model);
}

/** The outcome of a request: `rule: model@backend ...`, best first, or why it goes nowhere. */
export function naiveOutcome(world: World): string {
  const models = meaning(world.request.askedModel, world.models);
  const answers = (models.length === 0 ? [world.request.askedModel] : models).map((model) => decideFor(world, model));
  const better = (a: Answer, b: Answer) => {
    if (a.best && b.best) {
      if (a.best.type !== b.best.type) return a.best.type === "Local";
      return a.best.predictedTtftMs + a.best.harmMs < b.best.predictedTtftMs + b.best.harmMs;
    }
    return (a.hopelessness ?? 0) < (b.hopelessness ?? 0);
  };
  return answers.reduce((best, other) => (better(other, best) ? other : best)).text;
}
