import type { PolicyRule } from "../api/inference-policy.ts";
import type { CandidateMatch, RequestMatch } from "../api/request-match.ts";
import { CompileContext } from "../policy/compile-context.ts";
import type { Candidate } from "../policy/facts.ts";
import { type CandidateTest, compileCandidateMatch } from "../policy/match.ts";
import type { ModelCatalogue } from "../policy/model-catalogue.ts";
import { compileStage, DEFAULT_SELECT } from "../policy/select.ts";
import { Provider } from "../providers/provider.ts";
import type { Snapshot } from "../resources/snapshot.ts";

/** A way for requests to leave the cluster. */
export interface Egress {
  /** Where to; `*` is any provider. */
  readonly providers: readonly string[];
  /** Models by their names here; empty: whatever is asked for. */
  readonly models: readonly string[];
  /** The alternatives under which the rule decides; empty: always. */
  readonly when: readonly string[];
  /** Conditions under which it is closed. */
  readonly unless: readonly string[];
}

const ANY = "*";

/** How requests can leave the cluster by a rule, or undefined if none can. Shadow copies never do. */
export function egressOf(
  { route, matches = [] }: PolicyRule,
  snapshot: Snapshot,
  catalogue: ModelCatalogue,
): Egress | undefined {
  if (route === undefined) return undefined;
  const stages = (route.select ?? DEFAULT_SELECT).map(compileStage);
  const context = new CompileContext(catalogue, "", []);
  const sources = route.consider?.map(({ models, backend = {} }) => ({
    model: catalogue.compile(models),
    backend: compileCandidateMatch({ backend }, context, []),
  }));
  const always = (route.exclude ?? []).filter(
    (exclusion) => exclusion.if === undefined && looksAtNameOnly(exclusion.drop),
  );
  const dropped = always.map(({ drop }) => compileCandidateMatch(drop, context, []));
  const leaving = outsideCandidates(route, snapshot).filter(
    (candidate) =>
      stages.some((stage) => stage.leavesOut(candidate) === undefined) &&
      (sources === undefined ||
        sources.some(
          ({ model, backend }) => backend.holds(candidate) && (candidate.model === ANY || model(candidate.model)),
        )) &&
      !dropped.some((drop) => drops(drop, candidate)),
  );
  if (leaving.length === 0) return undefined;
  const models = [...new Set(leaving.map((candidate) => candidate.model))];
  const closing = (route.exclude ?? []).filter((exclusion) => {
    if (exclusion.if === undefined || !looksAtNameOnly(exclusion.drop)) return false;
    const drop = compileCandidateMatch(exclusion.drop, context, []);
    return leaving.every((candidate) => drops(drop, candidate));
  });
  return {
    providers: [...new Set(leaving.map((candidate) => candidate.name))],
    models: models.includes(ANY) ? [] : models,
    when: matches.map(matchInWords),
    unless: closing.flatMap((exclusion) => (exclusion.if === undefined ? [] : [matchInWords(exclusion.if)])),
  };
}

/** The conditions under which nothing leaves by a rule that otherwise lets requests leave. */
export function closingConditions(
  { route }: PolicyRule,
  catalogue: ModelCatalogue,
  snapshot: Snapshot,
): (RequestMatch | undefined)[] {
  if (route === undefined) return [];
  const context = new CompileContext(catalogue, "", []);
  return (route.exclude ?? [])
    .filter(({ drop }) => {
      const test = looksAtNameOnly(drop) ? compileCandidateMatch(drop, context, []) : undefined;
      return test !== undefined && outsideCandidates(route, snapshot).every((candidate) => drops(test, candidate));
    })
    .map((exclusion) => exclusion.if);
}

/** A match in a line, as YAML's flow style has it. */
export function matchInWords(match: RequestMatch): string {
  return Object.entries(match)
    .map(([field, value]) => `${field}: ${inFlow(value)}`)
    .join(", ");
}

function inFlow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inFlow).join(", ")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  return `{ ${Object.entries(value)
    .map(([key, item]) => `${key}: ${inFlow(item)}`)
    .join(", ")} }`;
}

/** Whether it drops by who a backend is and not by how it does. */
function looksAtNameOnly(drop: CandidateMatch): boolean {
  return Object.keys(drop).every((field) => field === "backend");
}

/** A provider whose labels nobody knows is not sure to be dropped by them. */
function drops(drop: CandidateTest, candidate: Candidate): boolean {
  return drop.holds(candidate) === true;
}

type Route = NonNullable<PolicyRule["route"]>;

/** Everything outside that a rule could mean: what is declared, what it names, and somebody whom nobody declared. */
function outsideCandidates(route: Route, snapshot: Snapshot): Candidate[] {
  const providers = snapshot.providers.map((provider) => new Provider(provider));
  const declared = providers.flatMap(({ name, labels, models }) =>
    [...models.keys()].map((model) => outside(name, model, labels)),
  );
  const providerNames = providers.map(({ name }) => name);
  const named = (route.select ?? []).flatMap(({ type, order = [] }) => (type === "Provider" ? order : []));
  const undeclared = named.filter((name) => !providerNames.includes(name)).map((name) => outside(name, ANY, {}));
  return [...declared, ...undeclared, ...(providers.length === 0 ? [outside(ANY, ANY, {})] : [])];
}

function outside(name: string, model: string, labels: Candidate["labels"]): Candidate {
  return {
    name,
    model,
    labels,
    type: "Provider",
    healthy: true,
    queuedPrompts: undefined,
    runningPrompts: undefined,
    kvCacheUsage: undefined,
    errorRate: 0,
    predictedTtftMs: 0,
    predictedE2eMs: 0,
    harmMs: 0,
    cachedTokens: 0,
    cost: 0,
  };
}
