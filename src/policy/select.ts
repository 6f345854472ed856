import type { MaximizeBy, MinimizeBy, SelectStage } from "../api/inference-policy.ts";
import type { Candidate } from "./facts.ts";

/** Ranks candidates best first; those it leaves out are not to be used. */
export type Stage = <C extends Candidate>(candidates: readonly C[]) => C[];

const MINIMIZE: Record<MinimizeBy, (candidate: Candidate) => number> = {
  // Least additional work: its own, and what it costs the others there.
  PredictedTTFT: (candidate) => candidate.predictedTtftMs + candidate.harmMs,
  PredictedE2E: (candidate) => candidate.predictedE2eMs + candidate.harmMs,
  QueuedPrompts: (candidate) => candidate.queuedPrompts ?? Number.POSITIVE_INFINITY,
  RunningPrompts: (candidate) => candidate.runningPrompts ?? Number.POSITIVE_INFINITY,
  KVCacheUsage: (candidate) => candidate.kvCacheUsage ?? Number.POSITIVE_INFINITY,
  Cost: (candidate) => candidate.cost,
};
const MAXIMIZE: Record<MaximizeBy, (candidate: Candidate) => number> = {
  CachedTokens: (candidate) => candidate.cachedTokens,
};

/** Where a rule says nothing, traffic stays inside. */
export const DEFAULT_SELECT: SelectStage[] = [{ type: "Local", minimize: "PredictedTTFT" }];

export function compileStage(stage: SelectStage): Stage {
  const ofType = <C extends Candidate>(candidates: readonly C[]) =>
    stage.type === undefined ? [...candidates] : candidates.filter((candidate) => candidate.type === stage.type);
  const { order } = stage;
  const rank = compileRank(stage);
  if (order === undefined) return (candidates) => ofType(candidates).sort(rank);
  const place = (candidate: Candidate) => {
    const byName = order.indexOf(candidate.name);
    return byName >= 0 ? byName : order.indexOf(candidate.model);
  };
  return (candidates) =>
    ofType(candidates)
      .filter((candidate) => place(candidate) >= 0)
      .sort((a, b) => place(a) - place(b) || rank(a, b));
}

/** Equal candidates are told apart by their predicted TTFT; the caller's order decides what is left. */
function compileRank(stage: SelectStage): (a: Candidate, b: Candidate) => number {
  const { minimize, maximize } = stage;
  const score = minimize
    ? MINIMIZE[minimize]
    : maximize
      ? (candidate: Candidate) => -MAXIMIZE[maximize](candidate)
      : () => 0;
  return (a, b) => compare(score(a), score(b)) || compare(a.predictedTtftMs, b.predictedTtftMs);
}

/** Subtraction would make NaN of two infinities. */
function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
