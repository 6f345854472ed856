import type { ClassifiedText } from "../classify/classifier.ts";
import { RequestTags } from "../classify/tags.ts";
import { type Decided, decide } from "../policy/decide.ts";
import type { RequestFacts } from "../policy/facts.ts";
import type { LimitProbe } from "../policy/limit.ts";
import type { InferenceRequest } from "../protocols/protocol.ts";
import type { Tenant } from "../tenancy/tenant-directory.ts";
import type { TokenLimiter } from "../tenancy/token-limiter.ts";
import { type BackendCandidate, CandidateFinder } from "./candidates.ts";
import { counterOf, estimateOf } from "./charges.ts";
import type { Configuration, RouteScope } from "./configuration.ts";
import type { Fleet } from "./fleet.ts";
import { factsOf } from "./request-facts.ts";
import type { RequestHead } from "./request-head.ts";

/** A request with the configuration that decides on it, from start to end. */
export interface Subject {
  readonly head: RequestHead;
  readonly request: InferenceRequest;
  readonly configuration: Configuration;
  readonly scope: RouteScope;
  readonly tenant: Tenant;
  readonly tags: RequestTags;
  /** What the name asked for stands for. */
  readonly models: readonly string[];
}

/** What a request is weighed against at one moment. */
export interface Moment {
  readonly fleet: Fleet;
  readonly limiter: TokenLimiter;
  readonly nowMs: number;
  readonly epochMs: number;
  /** Changes with each request, so that equal workers take turns. */
  readonly rotation: number;
}

/** A decision with what it was made of. Nothing is reserved yet. */
export interface Weighed {
  readonly finder: CandidateFinder;
  readonly facts: RequestFacts;
  readonly decided: Decided<BackendCandidate>;
  /** Limits that were found to be reached. */
  readonly exceeded: readonly string[];
  /** Whether all models are known: not when Envoy allows some endpoints alone, nor when no worker has told of its own. */
  readonly modelsKnown: boolean;
}

export function subjectOf(
  head: RequestHead,
  request: InferenceRequest,
  text: () => ClassifiedText,
  configuration: Configuration,
): Subject {
  const { scopes, tenants, catalogue, ownTags } = configuration;
  const scope = scopes.get(head.routeName ?? "") ?? scopes.get("");
  if (scope === undefined) throw new Error("there is always a scope for unnamed routes");
  return {
    head,
    request,
    configuration,
    scope,
    tenant: tenants.tenantOf({ header: (name) => head.headers.get(name), claim: head.claim }),
    tags: new RequestTags(text, ownTags),
    models: catalogue.resolve(request.model),
  };
}

/** Decides, without effect: tags that only somebody else can tell are noted and unknown for now. */
export function weigh(subject: Subject, moment: Moment, traced: boolean): Weighed {
  const { head, request, configuration, scope, tenant, tags, models } = subject;
  const exceeded: string[] = [];
  const probe: LimitProbe = (charge) => {
    const expected = { promptTokens: facts.promptTokens, maxTokens: request.maxTokens };
    const retryAfterMs = moment.limiter.exceededFor(counterOf(charge), estimateOf(charge, expected));
    if (retryAfterMs !== undefined) exceeded.push(charge.limit.name);
    return retryAfterMs;
  };
  const reach = {
    pools: scope.pools,
    subset: head.subset,
    // Behind somebody else's Envoy there is no cluster for a provider.
    providers: head.observe === undefined ? [] : configuration.providers,
    prices: configuration.prices,
  };
  const finder = new CandidateFinder(moment.fleet, reach, request, moment.nowMs, moment.rotation, probe);
  const facts = factsOf(head, request, tenant, finder, tags, moment.epochMs);
  const own = configuration.tenantRules(tenant);
  const rules = own.length === 0 ? scope.rules : [...own, ...scope.rules];
  return {
    finder,
    facts,
    decided: decide(rules, facts, models, finder, traced),
    exceeded,
    modelsKnown: head.subset === undefined && (!configuration.hasPools || moment.fleet.servesModels()),
  };
}
