import type { PolicyDecision } from "../policy/evaluate.ts";
import type { DecisionRecord } from "../telemetry/records.ts";
import type { BackendCandidate } from "./candidates.ts";
import type { Subject } from "./weigh.ts";

/** What is remembered of a decision: for metrics, live state and the flight. */
export function decisionRecord(
  id: string,
  { head, request, tenant, tags }: Subject,
  decision: PolicyDecision<BackendCandidate>,
  chosen: BackendCandidate,
  attempts: readonly BackendCandidate[],
): DecisionRecord {
  const requestId = head.headers.get("x-request-id");
  return {
    id,
    ...(requestId === undefined ? {} : { requestId }),
    at: new Date().toISOString(),
    tenant: tenant.name,
    api: request.api,
    requestedModel: request.model,
    model: chosen.model,
    stream: request.stream,
    rule: decision.rule,
    backendType: chosen.type,
    backend: chosen.name,
    fallbacks: attempts.slice(1).map((candidate) => candidate.name),
    tags: tags.found().map((tag) => tag.replace(/@.*$/, "")),
    notes: decision.notes,
    promptTokens: chosen.promptTokens,
    predictedCachedTokens: chosen.cachedTokens,
    predictedTtftMs: chosen.predictedTtftMs,
  };
}
