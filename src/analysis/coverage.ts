import type { PolicyRule } from "../api/inference-policy.ts";
import { parseQuantity } from "../api/quantity.ts";
import type { ModelSelector, RequestMatch } from "../api/request-match.ts";
import type { NumberRange } from "../api/schema.ts";
import { compileGlob } from "../policy/glob.ts";
import type { ModelCatalogue } from "../policy/model-catalogue.ts";

// Proofs by the form of matches: what is proved holds for every request, what is not may hold all the same.

/** Whether every request that `inner` matches is also matched by `outer`, as far as that can be proved. */
export function matchCovers(outer: RequestMatch, inner: RequestMatch, catalogue: ModelCatalogue): boolean {
  const proofs: Record<keyof RequestMatch, () => boolean> = {
    model: () => inner.model !== undefined && modelCovers(outer.model ?? "*", inner.model, catalogue),
    tag: () => tagsOf(inner).includes(outer.tag ?? ""),
    tags: () => (outer.tags ?? []).every((tag) => tagsOf(inner).includes(tag)),
    anyTag: () => anyTagCovers(outer.anyTag ?? [], inner),
    tenant: () => tenantCovers(outer.tenant, inner.tenant),
    api: () => inner.api !== undefined && listOf(inner.api).every((api) => listOf(outer.api ?? []).includes(api)),
    path: () => inner.path !== undefined && globCovers(outer.path ?? "*", inner.path),
    headers: () => (outer.headers ?? []).every((header) => headerCovered(header, inner.headers ?? [])),
    stream: () => outer.stream === inner.stream,
    promptTokens: () => inner.promptTokens !== undefined && rangeCovers(outer.promptTokens, inner.promptTokens),
    maxTokens: () => inner.maxTokens !== undefined && rangeCovers(outer.maxTokens, inner.maxTokens),
    tools: () => outer.tools === inner.tools,
    images: () => outer.images === inner.images,
    percent: () => (inner.percent ?? 100) <= (outer.percent ?? 100),
    pool: () => poolCovers(outer.pool ?? {}, inner.pool),
    time: () => same(outer.time, inner.time),
    expression: () => outer.expression === inner.expression,
  };
  return (Object.keys(outer) as (keyof RequestMatch)[]).every((field) => proofs[field]());
}

/** Whether `outer` ends every request that `inner` would match, so that `inner` is never reached. */
export function ruleHides(outer: PolicyRule, inner: PolicyRule, catalogue: ModelCatalogue): boolean {
  if (!endsRequests(outer)) return false;
  const outerMatches = outer.matches ?? [ALWAYS];
  const innerMatches = inner.matches ?? [ALWAYS];
  // A match that cannot be told lets a route pass, but holds for a refusal or a limit behind it.
  const passesUnknown = outer.route !== undefined && inner.route === undefined;
  return innerMatches.every((match) =>
    outerMatches.some((cover) => !(passesUnknown && canBeUnknown(cover)) && matchCovers(cover, match, catalogue)),
  );
}

/** Whether whatever matches the rule goes no further. */
export function endsRequests({ reject, route, limit }: PolicyRule): boolean {
  if (reject !== undefined) return true;
  return route !== undefined && route.onEmpty !== "NextRule" && limit?.onExceed !== "NextRule";
}

const ALWAYS: RequestMatch = {};

/** Whether the match may be one that cannot be told: it asks a classifier, a worker's state or an expression. */
export function canBeUnknown({ tag, tags, anyTag, pool, expression }: RequestMatch): boolean {
  return [tag, tags, anyTag, pool, expression].some((field) => field !== undefined);
}

/** Why a match can never hold, or undefined if it may. */
export function contradiction(match: RequestMatch): string | undefined {
  for (const field of ["promptTokens", "maxTokens"] as const) {
    const range = match[field];
    if (range !== undefined && isEmpty(range)) return `no number is in the range of \`${field}\``;
  }
  const exclusive = tagsOf(match).filter((tag) => tag.startsWith("complexity-"));
  if (new Set(exclusive).size > 1)
    return `a request has only one of ${exclusive.map((tag) => `\`${tag}\``).join(", ")}`;
  if (match.percent === 0) return "`percent: 0` is no conversation";
  return undefined;
}

export function tagsOf({ tag, tags = [] }: RequestMatch): string[] {
  return tag === undefined ? tags : [tag, ...tags];
}

function anyTagCovers(outer: readonly string[], inner: RequestMatch): boolean {
  if (tagsOf(inner).some((tag) => outer.includes(tag))) return true;
  return inner.anyTag?.every((tag) => outer.includes(tag)) === true;
}

/** A name with `*` covers another that it matches as it is written: its `*` takes in the other's. */
function globCovers(outer: string, inner: string): boolean {
  return compileGlob(outer)(inner);
}

function modelCovers(outer: string | ModelSelector, inner: string | ModelSelector, catalogue: ModelCatalogue): boolean {
  const [a, b] = [selectorOf(outer), selectorOf(inner)];
  const plain = (name: string) => {
    const meant = catalogue.resolve(name);
    return meant.length === 1 && meant[0] === name;
  };
  // An alias or a class stands for other names than its own: nothing but itself is sure to cover it.
  const nameCovers = (name: string, other: string) => name === other || (plain(other) && globCovers(name, other));
  const names =
    a.names === undefined || b.names?.every((other) => a.names?.some((name) => nameCovers(name, other))) === true;
  return (
    names &&
    (a.family === undefined || (b.family !== undefined && globCovers(a.family, b.family))) &&
    (a.capability === undefined || a.capability === b.capability) &&
    (a.labels === undefined || a.labels === b.labels)
  );
}

function selectorOf(model: string | ModelSelector): ModelSelector {
  return typeof model === "string" ? { names: [model] } : model;
}

function tenantCovers(outer: RequestMatch["tenant"], inner: RequestMatch["tenant"]): boolean {
  if (inner === undefined || outer === undefined) return false;
  const [a, b] = [outer, inner].map((tenant) => (typeof tenant === "string" ? { name: tenant } : tenant));
  return (
    (a?.name === undefined || (b?.name !== undefined && globCovers(a.name, b.name))) &&
    (a?.labels === undefined || a.labels === b?.labels)
  );
}

type HeaderMatch = NonNullable<RequestMatch["headers"]>[number];

function headerCovered(header: HeaderMatch, inner: readonly HeaderMatch[]): boolean {
  return inner.some(
    ({ name, value }) =>
      name.toLowerCase() === header.name.toLowerCase() &&
      (header.value === undefined || (value !== undefined && globCovers(header.value, value))),
  );
}

function poolCovers(outer: NonNullable<RequestMatch["pool"]>, inner: RequestMatch["pool"]): boolean {
  if (inner === undefined || outer.name !== inner.name) return false;
  return (["queuedPrompts", "runningPrompts", "kvCacheUsage", "healthyWorkers"] as const).every((field) => {
    const [a, b] = [outer[field], inner[field]];
    return a === undefined || (b !== undefined && rangeCovers(a, b));
  });
}

interface Interval {
  least: number;
  leastIn: boolean;
  most: number;
  mostIn: boolean;
}

function intervalOf(range: NumberRange): Interval {
  const { greaterThan, atLeast, lessThan, atMost, equals } = range;
  const number = (bound: number | string | undefined, otherwise: number) =>
    bound === undefined ? otherwise : parseQuantity(bound);
  const floor = Math.max(number(atLeast, Number.NEGATIVE_INFINITY), number(equals, Number.NEGATIVE_INFINITY));
  const above = number(greaterThan, Number.NEGATIVE_INFINITY);
  const ceiling = Math.min(number(atMost, Number.POSITIVE_INFINITY), number(equals, Number.POSITIVE_INFINITY));
  const below = number(lessThan, Number.POSITIVE_INFINITY);
  return {
    least: Math.max(floor, above),
    leastIn: greaterThan === undefined || floor > above,
    most: Math.min(ceiling, below),
    mostIn: lessThan === undefined || ceiling < below,
  };
}

function isEmpty(range: NumberRange): boolean {
  const { least, leastIn, most, mostIn } = intervalOf(range);
  return least > most || (least === most && !(leastIn && mostIn));
}

function rangeCovers(outer: NumberRange | undefined, inner: NumberRange): boolean {
  if (outer === undefined) return true;
  const [a, b] = [intervalOf(outer), intervalOf(inner)];
  const below = a.least < b.least || (a.least === b.least && (a.leastIn || !b.leastIn));
  const above = a.most > b.most || (a.most === b.most && (a.mostIn || !b.mostIn));
  return below && above;
}

function listOf<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? value : [value as T];
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
