import type { ApiName, BackendType } from "../api/request-match.ts";
import type { DecisionExplanation } from "./explanation.ts";

/** What was decided for a request, and why. No prompt text, no credentials. */
export interface DecisionRecord {
  readonly id: string;
  /** Envoy's `x-request-id`, by which others know the request. */
  readonly requestId?: string;
  readonly at: string;
  readonly tenant: string;
  readonly api: ApiName;
  readonly requestedModel: string;
  readonly model: string;
  readonly stream: boolean;
  readonly rule: string;
  readonly backendType: BackendType;
  /** The worker's or provider's name. */
  readonly backend: string;
  readonly fallbacks: readonly string[];
  readonly tags: readonly string[];
  readonly notes: readonly string[];
  readonly promptTokens: number;
  readonly predictedCachedTokens: number;
  readonly predictedTtftMs: number;
}

/** What came of it. Token counts are absent where the serving side reported none. */
export interface OutcomeRecord {
  readonly status: number;
  /** `ok`, `client-error`, `server-error`, `client-gone`, or `broken` when a stream ended early. */
  readonly outcome: Outcome;
  /** Where it was served; differs from the decision's backend after a fallback. */
  readonly servedBy: string;
  readonly ttftMs?: number;
  readonly e2eMs: number;
  readonly promptTokens?: number;
  readonly cachedTokens?: number;
  readonly outputTokens?: number;
}

export type Outcome = "ok" | "client-error" | "server-error" | "client-gone" | "broken";

/** A request that was answered without any backend. */
export interface RefusalRecord {
  readonly tenant: string;
  readonly model: string;
  readonly rule: string;
  readonly status: number;
  readonly code: string;
}

/** Hears of every request. Must return quickly: it is called on the request path. */
export interface Recorder {
  decided(decision: DecisionRecord): void;
  ended(decision: DecisionRecord, outcome: OutcomeRecord): void;
  refused(refusal: RefusalRecord): void;
  /** Why a request was decided as it was; of a sample of requests. */
  explained?(explanation: DecisionExplanation): void;
  /** A copy of a request was sent to another model, and its answer thrown away. */
  shadowed?(shadow: ShadowRecord): void;
}

export interface ShadowRecord {
  readonly rule: string;
  readonly model: string;
  readonly worker: string;
  /** HTTP status; 0 if there was no answer. */
  readonly status: number;
  readonly e2eMs: number;
}
