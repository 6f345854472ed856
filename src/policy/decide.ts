import type { CompiledRule } from "./compile.ts";
import { type CandidateSupply, evaluate, type PolicyDecision } from "./evaluate.ts";
import type { Candidate, RequestFacts } from "./facts.ts";
import { PolicyTrace } from "./trace.ts";

/** A decision, and how it came about if that was asked for. */
export interface Decided<C extends Candidate> {
  decision: PolicyDecision<C>;
  /** The model that the decision was made for: one of those that the name asked for stands for. */
  model: string;
  trace: PolicyTrace | undefined;
}

/**
 * Decides on a request for any of `models`. A class is decided as if the client had asked for each of its models in
 * turn, so that no rule can be escaped by asking for a class; of the answers the best is taken.
 */
export function decide<C extends Candidate>(
  rules: readonly CompiledRule[],
  facts: RequestFacts,
  models: readonly string[],
  supply: CandidateSupply<C>,
  traced = false,
): Decided<C> {
  const [only = facts.askedModel] = models;
  if (models.length <= 1) return decideOne(rules, facts, only, supply, traced);
  const all = models.map((model) => decideOne(rules, facts, model, supply, traced));
  return all.reduce((best, other) => (better(other.decision, best.decision) ? other : best));
}

function decideOne<C extends Candidate>(
  rules: readonly CompiledRule[],
  facts: RequestFacts,
  model: string,
  supply: CandidateSupply<C>,
  traced: boolean,
): Decided<C> {
  const trace = traced ? new PolicyTrace() : undefined;
  const own = model === facts.model ? facts : { ...facts, model };
  return { decision: evaluate(rules, own, supply, trace), model, trace };
}

/** Routes before refusals, and inside before outside; then the sooner. Of refusals the one that passes soonest. */
function better<C extends Candidate>(a: PolicyDecision<C>, b: PolicyDecision<C>): boolean {
  if (a.kind === "route" && b.kind === "route") {
    const [first] = a.ranking;
    const [second] = b.ranking;
    if (first === undefined || second === undefined) return false;
    if (first.type !== second.type) return first.type === "Local";
    return first.predictedTtftMs + first.harmMs < second.predictedTtftMs + second.harmMs;
  }
  return hopelessness(a) < hopelessness(b);
}

function hopelessness(decision: PolicyDecision<Candidate>): number {
  if (decision.kind === "route") return 0;
  if (decision.kind === "limited") return 2;
  if (decision.kind === "reject") return 4;
  return { overload: 1, unhealthy: 3, policy: 5, "unknown-model": 6 }[decision.cause];
}
