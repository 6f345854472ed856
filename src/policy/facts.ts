import type { ApiName, BackendType } from "../api/request-match.ts";
import type { Labels } from "./label-selector.ts";

/** What a rule can see of a request. */
export interface RequestFacts {
  api: ApiName;
  path: string;
  /** The model under consideration: what the client asked for, or one of those that its alias or class stands for. */
  model: string;
  /** As the client wrote it. */
  askedModel: string;
  tenant: string;
  tenantLabels: Labels;
  stream: boolean;
  promptTokens: number;
  /** Absent: the client set no cap. */
  maxTokens?: number;
  offersTools: boolean;
  imageCount: number;
  /** By lower-case name. */
  headers: ReadonlyMap<string, string>;
  /** Where in 0 to 100 its conversation falls: the same for all turns of one. */
  conversationPercent: number;
  /** The moment of the decision, milliseconds since 1970. */
  epochMs: number;
  /** Undefined when the tag cannot be computed. */
  hasTag(tag: string): Verdict;
  /** The route's pools, or one of them by its name. */
  pool(name: string | undefined): PoolState;
}

/** What the healthy workers of pools do as a whole. A number that nobody knows is undefined. */
export interface PoolState {
  queuedPrompts: number | undefined;
  runningPrompts: number | undefined;
  kvCacheUsage: number | undefined;
  healthyWorkers: number | undefined;
}

/** A pair (model, backend), with the state a rule can see of it. A number that nobody knows is undefined. */
export interface Candidate {
  model: string;
  type: BackendType;
  /** The worker's or provider's name. */
  name: string;
  labels: Labels;
  healthy: boolean;
  queuedPrompts: number | undefined;
  runningPrompts: number | undefined;
  kvCacheUsage: number | undefined;
  /** 0 to 1; 0 while nothing failed. */
  errorRate: number;
  predictedTtftMs: number;
  predictedE2eMs: number;
  /** Milliseconds of work and delay that the choice would cause to others; ranked with the request's own. */
  harmMs: number;
  cachedTokens: number;
  /** US dollars expected for this request; 0 where no price is known. */
  cost: number;
}

/** Three-valued: undefined is "cannot be told". */
export type Verdict = boolean | undefined;
