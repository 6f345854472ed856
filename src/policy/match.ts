import type { CandidateMatch, PoolMatch, RequestMatch } from "../api/request-match.ts";
import type { NumberRange } from "../api/schema.ts";
import type { CompileContext, Path } from "./compile-context.ts";
import { compileExpression } from "./expression.ts";
import type { Candidate, PoolState, RequestFacts, Verdict } from "./facts.ts";
import { compileGlob } from "./glob.ts";
import { compileLabels } from "./label-selector.ts";
import { compileRange } from "./range.ts";
import { compileTimeWindow } from "./time-window.ts";

/** A conjunction of named tests, so that an explanation can name the one that failed. */
export class Conjunction<T> {
  readonly #parts: readonly Part<T>[];

  constructor(parts: readonly Part<T>[]) {
    this.#parts = parts;
  }

  /** Holds if all parts hold; unknown if one is unknown and none fails. */
  holds(subject: T): Verdict {
    let verdict: Verdict = true;
    for (const part of this.#parts) {
      const one = part.test(subject);
      if (one === false) return false;
      if (one === undefined) verdict = undefined;
    }
    return verdict;
  }

  /** The parts that do not hold, with `?` behind those that cannot be told. */
  failing(subject: T): string[] {
    return this.#parts.flatMap((part) => {
      const verdict = part.test(subject);
      return verdict === true ? [] : [verdict === false ? part.field : `${part.field}?`];
    });
  }
}

interface Part<T> {
  field: string;
  test(subject: T): Verdict;
}

export type RequestTest = Conjunction<RequestFacts>;
export type CandidateTest = Conjunction<Candidate>;

function inRange<T>(bounds: NumberRange, read: (subject: T) => number | undefined): (subject: T) => Verdict {
  const holds = compileRange(bounds);
  return (subject) => {
    const value = read(subject);
    return value === undefined ? undefined : holds(value);
  };
}

/** Cheap tests come first, so that tags are computed only when all else holds. */
export function compileRequestMatch(match: RequestMatch, context: CompileContext, path: Path): RequestTest {
  const parts: Part<RequestFacts>[] = [];
  const add = (field: string, test: (facts: RequestFacts) => Verdict) => parts.push({ field, test });
  const { model, api, tenant, stream, promptTokens, maxTokens, tools, images, percent } = match;
  if (model !== undefined) {
    const test = context.attempt([...path, "model"], () => context.catalogue.compile(model));
    if (test) add("model", (facts) => test(facts.model) || test(facts.askedModel));
    else add("model", unknown);
  }
  if (api !== undefined) {
    const apis = Array.isArray(api) ? api : [api];
    add("api", (facts) => apis.includes(facts.api));
  }
  if (tenant !== undefined) addTenant(tenant, add, context, [...path, "tenant"]);
  if (match.path !== undefined) {
    const test = compileGlob(match.path);
    add("path", (facts) => test(facts.path));
  }
  for (const { name, value } of match.headers ?? []) {
    const key = name.toLowerCase();
    const test = value === undefined ? undefined : compileGlob(value);
    add(`headers ${name}`, (facts) => {
      const actual = facts.headers.get(key);
      return actual !== undefined && (test === undefined || test(actual));
    });
  }
  if (stream !== undefined) add("stream", (facts) => facts.stream === stream);
  if (tools !== undefined) add("tools", (facts) => facts.offersTools === tools);
  if (images !== undefined) add("images", (facts) => facts.imageCount > 0 === images);
  if (percent !== undefined) add("percent", (facts) => facts.conversationPercent < percent);
  if (promptTokens !== undefined)
    add(
      "promptTokens",
      inRange(promptTokens, (facts) => facts.promptTokens),
    );
  if (maxTokens !== undefined)
    add(
      "maxTokens",
      inRange(maxTokens, (facts) => facts.maxTokens ?? Number.POSITIVE_INFINITY),
    );
  if (match.pool !== undefined) addPool(match.pool, add);
  addCostly(match, add, context, path);
  return new Conjunction(parts);
}

type Add = (field: string, test: (facts: RequestFacts) => Verdict) => void;

/** What takes a clock, an interpreter or a classifier. */
function addCostly(match: RequestMatch, add: Add, context: CompileContext, path: Path): void {
  const { time, expression, tag, tags = [], anyTag } = match;
  if (time !== undefined) {
    const test = context.attempt([...path, "time"], () => compileTimeWindow(time));
    add("time", test ? (facts) => test(facts.epochMs) : unknown);
  }
  if (expression !== undefined) {
    const idOf = (name: string) => context.useTag(name, [...path, "expression"]);
    const compiled = context.attempt([...path, "expression"], () => compileExpression(expression, idOf));
    add("expression", compiled ? (facts) => compiled.holds(facts) : unknown);
  }
  if (tag !== undefined) {
    const id = context.useTag(tag, [...path, "tag"]);
    add(`tag ${tag}`, (facts) => facts.hasTag(id));
  }
  tags.forEach((name, i) => {
    const id = context.useTag(name, [...path, "tags", i]);
    add(`tag ${name}`, (facts) => facts.hasTag(id));
  });
  if (anyTag === undefined) return;
  const ids = anyTag.map((name, i) => context.useTag(name, [...path, "anyTag", i]));
  add(`any tag of ${anyTag.join(", ")}`, (facts) => anyOf(ids, (id) => facts.hasTag(id)));
}

function addTenant(tenant: NonNullable<RequestMatch["tenant"]>, add: Add, context: CompileContext, path: Path): void {
  const { name, labels } = typeof tenant === "string" ? { name: tenant, labels: undefined } : tenant;
  if (name !== undefined) {
    const test = compileGlob(name);
    add("tenant", (facts) => test(facts.tenant));
  }
  if (labels === undefined) return;
  const test = context.attempt([...path, "labels"], () => compileLabels(labels));
  add("tenant labels", test ? (facts) => test(facts.tenantLabels) : unknown);
}

const POOL_FIELDS = ["queuedPrompts", "runningPrompts", "kvCacheUsage", "healthyWorkers"] as const;

function addPool(match: PoolMatch, add: Add): void {
  const tests = POOL_FIELDS.flatMap((field) => {
    const range = match[field];
    return range === undefined ? [] : [inRange<PoolState>(range, (state) => state[field])];
  });
  add("pool", (facts) => {
    const state = facts.pool(match.name);
    const verdicts = tests.map((test) => test(state));
    return verdicts.includes(false) ? false : verdicts.includes(undefined) ? undefined : true;
  });
}

/** What did not compile holds for nobody and fails for nobody: it cannot be told. */
function unknown(): Verdict {
  return undefined;
}

/** Whether the test holds for one item; unknown if it cannot be told for one and holds for none. */
export function anyOf<T>(items: readonly T[], test: (item: T) => Verdict): Verdict {
  let verdict: Verdict = false;
  for (const item of items) {
    const one = test(item);
    if (one === true) return true;
    if (one === undefined) verdict = undefined;
  }
  return verdict;
}

const CANDIDATE_RANGES = {
  queuedPrompts: (candidate: Candidate) => candidate.queuedPrompts,
  runningPrompts: (candidate: Candidate) => candidate.runningPrompts,
  kvCacheUsage: (candidate: Candidate) => candidate.kvCacheUsage,
  predictedTTFT: (candidate: Candidate) => candidate.predictedTtftMs,
  predictedE2E: (candidate: Candidate) => candidate.predictedE2eMs,
  predictedCachedTokens: (candidate: Candidate) => candidate.cachedTokens,
  errorRate: (candidate: Candidate) => candidate.errorRate,
  cost: (candidate: Candidate) => candidate.cost,
} as const;
const RANGE_FIELDS = Object.keys(CANDIDATE_RANGES) as (keyof typeof CANDIDATE_RANGES)[];

export function compileCandidateMatch(match: CandidateMatch, context: CompileContext, path: Path): CandidateTest {
  const parts: Part<Candidate>[] = [];
  const add = (field: string, test: (candidate: Candidate) => Verdict) => parts.push({ field, test });
  const { backend, model, healthy } = match;
  if (backend?.type !== undefined) add("backend type", (candidate) => candidate.type === backend.type);
  if (backend?.name !== undefined) {
    const test = compileGlob(backend.name);
    add("backend name", (candidate) => test(candidate.name));
  }
  if (backend?.labels !== undefined) {
    const { labels } = backend;
    const test = context.attempt([...path, "backend", "labels"], () => compileLabels(labels));
    add("backend labels", test ? (candidate) => test(candidate.labels) : unknown);
  }
  if (model !== undefined) {
    const test = context.attempt([...path, "model"], () => context.catalogue.compile(model));
    add("model", test ? (candidate) => test(candidate.model) : unknown);
  }
  if (healthy !== undefined) add("healthy", (candidate) => candidate.healthy === healthy);
  for (const field of RANGE_FIELDS) {
    const range = match[field];
    if (range !== undefined) add(field, inRange(range, CANDIDATE_RANGES[field]));
  }
  return new Conjunction(parts);
}

/** Whether a match looks at load, so that being dropped by it means overload and not prohibition. */
export function looksAtLoad(match: CandidateMatch): boolean {
  return ["queuedPrompts", "runningPrompts", "kvCacheUsage", "predictedTTFT", "predictedE2E"].some((f) => f in match);
}
