import type { ApiName } from "../api/request-match.ts";
import type { Candidate, PoolState } from "../policy/facts.ts";
import type { CandidateTrace, RuleTrace } from "../policy/trace.ts";

/**
 * One decision with all that went into it: enough to say why, and to decide again under other policies. No prompt text,
 * no credentials, and of the headers only those that the operator asked for. A line of the decision log.
 */
export interface DecisionExplanation {
  /** Of the decision; the outcome of the request carries the same. */
  id: string;
  /** Envoy's `x-request-id`. */
  requestId?: string;
  at: string;
  /** The HTTPRoute's `namespace/name`; "" for the default route. */
  route: string;
  request: ExplainedRequest;
  /** By pool name; "" is all of them. */
  pools: Record<string, PoolState>;
  /** Everybody who could have served it, under whatever model. */
  candidates: Candidate[];
  decision: ExplainedDecision;
  /** What became of each rule, in order. */
  rules: RuleTrace[];
  /** What became of each candidate under the rule that decided. */
  considered: CandidateTrace[];
  notes: string[];
}

export interface ExplainedRequest {
  api: ApiName;
  path: string;
  askedModel: string;
  /** What the name stands for: one model, or those of a class. */
  models: readonly string[];
  tenant: string;
  tenantLabels: Readonly<Record<string, string>>;
  stream: boolean;
  promptTokens: number;
  maxTokens?: number;
  offersTools: boolean;
  imageCount: number;
  conversationPercent: number;
  epochMs: number;
  headers: Record<string, string>;
  /** The tags that rules asked for; `null` where nobody could tell. */
  tags: Record<string, boolean | null>;
  /** Limits that were reached, by `namespace/policy/rule`. */
  exceeded: string[];
}

export type ExplainedDecision =
  | { kind: "route"; rule: string; model: string; backend: string; type: string; fallbacks: string[] }
  | { kind: "reject" | "limited" | "empty"; rule: string; status: number; code: string; message: string };
