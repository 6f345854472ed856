import type { ApiName, BackendType } from "../api/inference-policy.ts";

/** What a rule can see of a request. */
export interface RequestFacts {
  api: ApiName;
  path: string;
  model: string;
  tenant: string;
  stream: boolean;
  promptTokens: number;
  /** Absent: the client set no cap. */
  maxTokens?: number;
  offersTools: boolean;
  imageCount: number;
  header(name: string): string | undefined;
  /** Undefined when the tag cannot be computed. */
  hasTag(tag: string): boolean | undefined;
}

/** A pair (model, backend), with the state a rule can see of it. A number that nobody knows is undefined. */
export interface Candidate {
  model: string;
  type: BackendType;
  /** The worker's or provider's name. */
  name: string;
  healthy: boolean;
  queuedPrompts: number | undefined;
  runningPrompts: number | undefined;
  kvCacheUsage: number | undefined;
  predictedTtftMs: number;
  predictedE2eMs: number;
  /** Milliseconds of work and delay that the choice would cause to others; ranked with the request's own. */
  harmMs: number;
  cachedTokens: number;
  /** US dollars expected for this request; 0 for local workers without a price. */
  cost: number;
}

/** Three-valued: undefined is "cannot be told". */
export type Verdict = boolean | undefined;
