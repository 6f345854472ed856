import type { MAXIMIZE_BY, MINIMIZE_BY, SelectStage } from "../api/inference-policy.ts";
import type { Candidate } from "./facts.ts";

/** Keeps some candidates and ranks them, best first; those it leaves out are not to be used. */
export interface Stage {
  rank<C extends Candidate>(candidates: readonly C[]): C[];
  /** Why a candidate is left out, for explanations; undefined if it is not. */
  leavesOut(candidate: Candidate): string | undefined;
  /** What it ranks by. */
  readonly by: string;
  /** The value of a candidate that it ranks by, if it does. */
  readonly value: ((candidate: Candidate) => number) | undefined;
}

const MINIMIZE: Record<(typeof MINIMIZE_BY)[number], (candidate: Candidate) => number> = {
  // Least additional work: its own, and what it costs the others there.
  PredictedTTFT: (candidate) => candidate.predictedTtftMs + candidate.harmMs,
  PredictedE2E: (candidate) => candidate.predictedE2eMs + candidate.harmMs,
  QueuedPrompts: (candidate) => candidate.queuedPrompts ?? Number.POSITIVE_INFINITY,
  RunningPrompts: (candidate) => candidate.runningPrompts ?? Number.POSITIVE_INFINITY,
  KVCacheUsage: (candidate) => candidate.kvCacheUsage ?? Number.POSITIVE_INFINITY,
  ErrorRate: (candidate) => candidate.errorRate,
  Cost: (candidate) => candidate.cost,
};
const MAXIMIZE: Record<(typeof MAXIMIZE_BY)[number], (candidate: Candidate) => number> = {
  CachedTokens: (candidate) => candidate.cachedTokens,
};

/** Where a rule says nothing, traffic stays inside. */
export const DEFAULT_SELECT: SelectStage[] = [{ type: "Local", minimize: "PredictedTTFT" }];

export function compileStage(stage: SelectStage): Stage {
  const { type, order, minimize, maximize } = stage;
  const value = minimize ? MINIMIZE[minimize] : maximize ? MAXIMIZE[maximize] : undefined;
  const score = maximize ? (candidate: Candidate) => -MAXIMIZE[maximize](candidate) : (value ?? (() => 0));
  const place = (candidate: Candidate) => {
    if (order === undefined) return 0;
    const byName = order.indexOf(candidate.name);
    return byName >= 0 ? byName : order.indexOf(candidate.model);
  };
  // Equal candidates are told apart by their predicted TTFT; the caller's order decides what is left.
  const compareTwo = (a: Candidate, b: Candidate) =>
    place(a) - place(b) || compare(score(a), score(b)) || compare(a.predictedTtftMs, b.predictedTtftMs);
  const keeps = (candidate: Candidate) => (type === undefined || candidate.type === type) && place(candidate) >= 0;
  return {
    by: [order && `order ${order.join(", ")}`, minimize && `least ${minimize}`, maximize && `most ${maximize}`]
      .filter(Boolean)
      .join(", then "),
    value,
    rank: (candidates) => candidates.filter(keeps).sort(compareTwo),
    leavesOut(candidate) {
      if (type !== undefined && candidate.type !== type) return `not ${type}`;
      return place(candidate) < 0 ? `not among ${order?.join(", ")}` : undefined;
    },
  };
}

/** Subtraction would make NaN of two infinities. */
function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
