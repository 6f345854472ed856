import type { Decided } from "../policy/decide.ts";
import type { Candidate } from "../policy/facts.ts";
import type { DecisionExplanation, ExplainedDecision } from "../telemetry/explanation.ts";
import { refusalOf } from "./refusals.ts";
import type { Subject, Weighed } from "./weigh.ts";

/** Writes down how a decision came about, with the state of all who could have served the request. */
export function explain(
  subject: Subject,
  weighed: Weighed,
  id: string,
  loggedHeaders: readonly string[],
): DecisionExplanation {
  const { head, tags, models } = subject;
  const { finder, facts, decided, exceeded } = weighed;
  const requestId = head.headers.get("x-request-id");
  const { api, path, askedModel, tenant, tenantLabels, stream, promptTokens, maxTokens } = facts;
  const pools = [...(subject.scope.pools ?? finder.poolKeys())].map((key) => key.slice(key.indexOf("/") + 1));
  return {
    id,
    ...(requestId === undefined ? {} : { requestId }),
    at: new Date(facts.epochMs).toISOString(),
    route: head.routeName ?? "",
    request: {
      api,
      path,
      askedModel,
      models,
      tenant,
      tenantLabels,
      stream,
      promptTokens,
      ...(maxTokens === undefined ? {} : { maxTokens }),
      offersTools: facts.offersTools,
      imageCount: facts.imageCount,
      conversationPercent: facts.conversationPercent,
      epochMs: facts.epochMs,
      headers: Object.fromEntries(
        loggedHeaders.flatMap((name) => {
          const value = head.headers.get(name);
          return value === undefined ? [] : [[name, value]];
        }),
      ),
      tags: tags.verdicts(),
      exceeded: [...new Set(exceeded)],
    },
    pools: Object.fromEntries(["", ...pools].map((name) => [name, finder.pool(name === "" ? undefined : name)])),
    candidates: finder.servedModels().flatMap((model) => finder.of(model).map(stateOf)),
    decision: decisionInShort(decided, weighed.modelsKnown),
    rules: decided.trace?.rules ?? [],
    considered: decided.trace?.candidates ?? [],
    notes: decided.decision.notes,
  };
}

/**
 * A decision as explanations have it.
 * @param modelsKnown whether a model that no candidate serves is one that nobody has
 */
export function decisionInShort({ decision, model }: Decided<Candidate>, modelsKnown: boolean): ExplainedDecision {
  if (decision.kind === "route") {
    const [first, ...rest] = decision.ranking;
    if (first === undefined) throw new Error("a routed request has a candidate");
    const { rule } = decision;
    const fallbacks = rest.map((candidate) => candidate.name);
    return { kind: "route", rule, model: first.model, backend: first.name, type: first.type, fallbacks };
  }
  const { status, code, message } = refusalOf(decision, model, modelsKnown);
  return { kind: decision.kind, rule: decision.rule, status, code, message };
}

/** A candidate's state as rules see it, without what it takes to send a request there. */
function stateOf(candidate: Candidate): Candidate {
  const { model, type, name, labels, healthy, queuedPrompts, runningPrompts, kvCacheUsage, errorRate } = candidate;
  const { predictedTtftMs, predictedE2eMs, harmMs, cachedTokens, cost } = candidate;
  return {
    model,
    type,
    name,
    labels,
    healthy,
    queuedPrompts,
    runningPrompts,
    kvCacheUsage,
    errorRate,
    predictedTtftMs,
    predictedE2eMs,
    harmMs,
    cachedTokens,
    cost,
  };
}
