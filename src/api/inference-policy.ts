import type { Resource } from "./resource.ts";

export const KINFERENCE_API = "kinference.buoyant.io/v1alpha1";

/** Rules that say which requests go where, or are refused. Meaning: docs/policies.md. */
export type InferencePolicy = Resource<"InferencePolicy", InferencePolicySpec>;

export interface InferencePolicySpec {
  /** Higher first; default 0. */
  priority?: number;
  /** Gateways or HTTPRoutes of the same namespace; none: every route. */
  targetRefs?: TargetRef[];
  rules: PolicyRule[];
}

export interface TargetRef {
  group?: string;
  kind: "Gateway" | "HTTPRoute";
  name: string;
}

export interface PolicyRule {
  name: string;
  /** Alternatives; absent: always. */
  matches?: RequestMatch[];
  /** Exactly one of `route` and `reject`. */
  route?: RouteAction;
  reject?: RejectAction;
}

/** All fields given must hold. */
export interface RequestMatch {
  /** A name, a glob (`qwen-*`), or several. */
  model?: string | { names: string[] };
  tag?: string;
  /** All of them. */
  tags?: string[];
  /** At least one of them. */
  anyTag?: string[];
  /** A name or glob. */
  tenant?: string;
  api?: ApiName | ApiName[];
  /** A path or glob. */
  path?: string;
  headers?: { name: string; value?: string }[];
  stream?: boolean;
  promptTokens?: NumberRange;
  maxTokens?: NumberRange;
  /** Whether the request offers tools. */
  tools?: boolean;
  /** Whether the request carries images. */
  images?: boolean;
}

/** Numbers may be written `32k` or `2M`. All bounds given must hold. */
export interface NumberRange {
  greaterThan?: Quantity;
  atLeast?: Quantity;
  lessThan?: Quantity;
  atMost?: Quantity;
  equals?: Quantity;
}

export type Quantity = number | string;

export interface RouteAction {
  consider?: CandidateSource[];
  exclude?: Exclusion[];
  select?: SelectStage[];
  onEmpty?: "Reject" | "NextRule";
}

export interface CandidateSource {
  models: { names: string[] };
  backend?: BackendMatch;
}

export interface Exclusion {
  name?: string;
  /** Absent: always. */
  if?: RequestMatch;
  drop: CandidateMatch;
}

/** All fields given must hold of the candidate. */
export interface CandidateMatch {
  backend?: BackendMatch;
  model?: string | { names: string[] };
  queuedPrompts?: NumberRange;
  runningPrompts?: NumberRange;
  /** 0 to 1. */
  kvCacheUsage?: NumberRange;
  /** Milliseconds, or a duration such as `250ms`. */
  predictedTTFT?: NumberRange;
  predictedCachedTokens?: NumberRange;
}

export interface BackendMatch {
  type?: BackendType;
  /** A worker's or provider's name, or a glob. */
  name?: string;
}

export type BackendType = "Local" | "Provider";

export interface SelectStage {
  type?: BackendType;
  minimize?: MinimizeBy;
  maximize?: MaximizeBy;
  /** Only those named, in that order: provider, worker or model names. */
  order?: string[];
}

export const MINIMIZE_BY = [
  "PredictedTTFT",
  "PredictedE2E",
  "QueuedPrompts",
  "RunningPrompts",
  "KVCacheUsage",
  "Cost",
] as const;
export const MAXIMIZE_BY = ["CachedTokens"] as const;
export type MinimizeBy = (typeof MINIMIZE_BY)[number];
export type MaximizeBy = (typeof MAXIMIZE_BY)[number];

export interface RejectAction {
  /** HTTP status, 400 to 599; default 403. */
  status?: number;
  code?: string;
  message: string;
}

export const API_NAMES = [
  "chat",
  "completions",
  "responses",
  "messages",
  "countTokens",
  "embeddings",
  "models",
  "tokenize",
] as const;
export type ApiName = (typeof API_NAMES)[number];
