import type { PolicyRule } from "../api/inference-policy.ts";
import type { CandidateMatch, RequestMatch } from "../api/request-match.ts";
import type { Candidate } from "../policy/facts.ts";
import { compileGlob } from "../policy/glob.ts";
import { compileLabels } from "../policy/label-selector.ts";
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

/** Somebody outside to whom a rule might send: a provider that is declared, or one that may yet be. */
interface Outsider extends Candidate {
  declared: boolean;
}

const ANY = "*";

type BackendMatch = NonNullable<CandidateMatch["backend"]>;
type Route = NonNullable<PolicyRule["route"]>;

/** How requests can leave the cluster by a rule, or undefined if none can. Shadow copies never do. */
export function egressOf(rule: PolicyRule, snapshot: Snapshot, catalogue: ModelCatalogue): Egress | undefined {
  const { route, matches = [] } = rule;
  if (route === undefined) return undefined;
  const stages = (route.select ?? DEFAULT_SELECT).map(compileStage);
  const sources = route.consider?.map(({ models, backend = {} }) => ({ offers: catalogue.compile(models), backend }));
  const always = (route.exclude ?? []).filter((exclusion) => exclusion.if === undefined).map(({ drop }) => drop);
  const leaving = outsiders(route, snapshot).filter(
    (candidate) =>
      stages.some((stage) => stage.leavesOut(candidate) === undefined) &&
      (sources === undefined ||
        sources.some(
          ({ offers, backend }) =>
            mayBe(backend, candidate) && (candidate.model === ANY || !candidate.declared || offers(candidate.model)),
        )) &&
      !always.some((drop) => surelyDrops(drop, candidate)),
  );
  if (leaving.length === 0) return undefined;
  const names = [...new Set(leaving.map((candidate) => candidate.name))];
  const models = [...new Set(leaving.map((candidate) => candidate.model))];
  // What may be a provider's name or a model's is taken for a provider's, for readers.
  const ambiguous = leaving
    .filter(({ name }) => name === ANY)
    .every(({ model }) => names.includes(model) && model !== ANY);
  const closing = closedFor(route, leaving);
  return {
    providers: ambiguous ? names.filter((name) => name !== ANY) : names,
    models: models.includes(ANY) ? [] : models,
    when: matches.map(matchInWords),
    unless: closing.flatMap((condition) => (condition === undefined ? [] : [matchInWords(condition)])),
  };
}

/** Where a way out leads, in words. */
export function destination({ providers }: Egress): string {
  return providers.includes(ANY) ? "any provider" : providers.join(", ");
}

/** The conditions under which nothing leaves by a rule that otherwise lets requests leave; undefined is always. */
export function closingConditions({ route }: PolicyRule, snapshot: Snapshot): (RequestMatch | undefined)[] {
  return route === undefined ? [] : closedFor(route, outsiders(route, snapshot));
}

function closedFor(route: Route, leaving: readonly Outsider[]): (RequestMatch | undefined)[] {
  return (route.exclude ?? [])
    .filter(({ drop }) => leaving.every((candidate) => surelyDrops(drop, candidate)))
    .map((exclusion) => exclusion.if);
}

/** Whether a drop takes a candidate however it does: by who it is alone. */
function surelyDrops({ backend, ...state }: CandidateMatch, candidate: Outsider): boolean {
  if (backend === undefined || Object.keys(state).length > 0) return false;
  const { type = candidate.type, name = ANY, labels } = backend;
  // A pattern takes a name that nobody knows only if it takes every name.
  if (type !== candidate.type || !compileGlob(name)(candidate.name)) return false;
  return labels === undefined || (candidate.declared && compileLabels(labels)(candidate.labels));
}

function mayBe({ type, name, labels }: BackendMatch, candidate: Outsider): boolean {
  if (type !== undefined && type !== candidate.type) return false;
  if (name !== undefined && candidate.name !== ANY && !compileGlob(name)(candidate.name)) return false;
  return labels === undefined || !candidate.declared || compileLabels(labels)(candidate.labels);
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

/** Everybody outside that a rule could mean. Where nobody is declared, anybody may be. */
function outsiders(route: Route, snapshot: Snapshot): Outsider[] {
  const providers = snapshot.providers.map((provider) => new Provider(provider));
  const declared = providers.flatMap(({ name, labels, models }) =>
    [...models.keys()].map((model) => outsider(name, model, labels, true)),
  );
  const open = providers.length === 0;
  const named = (route.select ?? []).flatMap(({ type, order = [] }) => {
    // An order names providers, workers or models: which, only what is declared can tell.
    const unknown = order.filter((name) => !providers.some((provider) => provider.name === name));
    if (type === "Local") return [];
    return [
      ...(type === "Provider" || open ? unknown.map((name) => outsider(name, ANY, {}, false)) : []),
      ...(open ? unknown.map((model) => outsider(ANY, model, {}, false)) : []),
    ];
  });
  return [...declared, ...named, ...(open ? [outsider(ANY, ANY, {}, false)] : [])];
}

function outsider(name: string, model: string, labels: Candidate["labels"], declared: boolean): Outsider {
  return {
    name,
    model,
    labels,
    declared,
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
