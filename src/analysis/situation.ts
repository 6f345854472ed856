import type { Configuration, RouteScope } from "../handler/configuration.ts";
import { decisionInShort } from "../handler/explanation.ts";
import { type Decided, decide } from "../policy/decide.ts";
import type { CandidateSupply } from "../policy/evaluate.ts";
import type { Candidate, PoolState, RequestFacts, Verdict } from "../policy/facts.ts";
import type { LimitProbe } from "../policy/limit.ts";
import type { ExplainedDecision, ExplainedRequest } from "../telemetry/explanation.ts";

/** A request and the state of the world that it meets: all that a decision depends on. A decision-log line is one. */
export interface Situation {
  /** The HTTPRoute's `namespace/name`; "" for the default route. */
  readonly route: string;
  readonly request: ExplainedRequest;
  /** By pool name; "" is all of them. */
  readonly pools: Readonly<Record<string, PoolState>>;
  /** Everybody who could serve it, under whatever model. */
  readonly candidates: readonly Candidate[];
}

export interface SituationOutcome {
  readonly decided: Decided<Candidate>;
  readonly decision: ExplainedDecision;
  /** Tags that rules asked for and the situation does not tell. */
  readonly untold: readonly string[];
}

/**
 * Decides a situation as the handler would under a configuration.
 * @param exceeds absent: the limits that the request says were reached are reached
 */
export function decideSituation(
  configuration: Configuration,
  situation: Situation,
  exceeds: LimitProbe = reachedIn(situation),
): SituationOutcome {
  const { request, pools, candidates } = situation;
  const untold = new Set<string>();
  const hasTag = (id: string): Verdict => {
    const told = id in request.tags ? request.tags[id] : request.tags[nameOfTag(id)];
    if (told === undefined) untold.add(nameOfTag(id));
    return told ?? undefined;
  };
  const facts: RequestFacts = {
    ...request,
    model: request.askedModel,
    headers: new Map(Object.entries(request.headers)),
    hasTag,
    pool: (name) => pools[name ?? ""] ?? NOBODY,
  };
  const supply: CandidateSupply<Candidate> = {
    of: (model) => candidates.filter((candidate) => candidate.model === model),
    servedModels: () => [...new Set(candidates.map((candidate) => candidate.model))],
    exceeds,
  };
  const rules = [...tenantRules(configuration, request), ...scopeOf(configuration, situation.route).rules];
  const decided = decide(rules, facts, configuration.catalogue.resolve(request.askedModel), supply, true);
  return { decided, decision: decisionInShort(decided, true), untold: [...untold] };
}

const NOBODY: PoolState = {
  queuedPrompts: 0,
  runningPrompts: 0,
  kvCacheUsage: undefined,
  healthyWorkers: 0,
};

/** An own tag is asked for as `name@namespace/policy`. */
export function nameOfTag(id: string): string {
  return id.split("@")[0] ?? id;
}

export function scopeOf({ scopes }: Configuration, route: string): RouteScope {
  const scope = scopes.get(route) ?? scopes.get("");
  if (scope === undefined) throw new Error("there is always a scope for unnamed routes");
  return scope;
}

function tenantRules(configuration: Configuration, { tenant, tenantLabels }: ExplainedRequest) {
  return configuration.tenantRules({ name: tenant, labels: tenantLabels, limits: [] });
}

/** Where the clock stands still, a reached limit says to come back in this time. */
const RETRY_AFTER_MS = 60_000;

function reachedIn({ request }: Situation): LimitProbe {
  return ({ limit }) => {
    const reached = request.exceeded.some((name) => name === limit.name || limit.name.endsWith(`/${name}`));
    return reached ? RETRY_AFTER_MS : undefined;
  };
}
