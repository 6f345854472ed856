import type { RejectAction } from "../api/inference-policy.ts";
import type { CompiledExclusion, CompiledRoute, CompiledRule } from "./compile.ts";
import type { Candidate, RequestFacts } from "./facts.ts";
import { compileStage, DEFAULT_SELECT } from "./select.ts";

/** Every candidate for a model, healthy or not. Called once for each model that is considered. */
export type CandidatesOf<C extends Candidate> = (model: string) => readonly C[];

export type PolicyDecision<C extends Candidate> =
  | { kind: "route"; rule: string /** Best first; the rest are fallbacks. */; ranking: C[]; notes: string[] }
  | { kind: "reject"; rule: string; reject: RejectAction; notes: string[] }
  | { kind: "empty"; rule: string; cause: EmptyCause; notes: string[] };

/** Why nothing is left: nobody has the model, nobody is well, everybody is too busy, or it is forbidden. */
export type EmptyCause = "unknown-model" | "unhealthy" | "overload" | "policy";

export const DEFAULT_RULE = "default";
const DEFAULT_ROUTE: CompiledRoute = {
  consider: undefined,
  exclude: [],
  select: DEFAULT_SELECT.map(compileStage),
  onEmpty: "Reject",
};

/** Tries the rules in order; the first that holds decides. Pure: the same facts and candidates give the same decision. */
export function evaluate<C extends Candidate>(
  rules: readonly CompiledRule[],
  facts: RequestFacts,
  candidatesOf: CandidatesOf<C>,
): PolicyDecision<C> {
  const notes: string[] = [];
  for (const rule of rules) {
    const holds = rule.matches(facts);
    if (holds === false) continue;
    if ("reject" in rule.action) {
      // What cannot be told is taken to hold where that refuses, and not to hold where it would allow.
      if (holds === undefined) notes.push(`${rule.name}: match cannot be told, taken as true`);
      return { kind: "reject", rule: rule.name, reject: rule.action.reject, notes };
    }
    if (holds === undefined) {
      notes.push(`${rule.name}: match cannot be told, taken as false`);
      continue;
    }
    const decision = route(rule.name, rule.action, facts, candidatesOf, notes);
    if (decision.kind === "empty" && rule.action.onEmpty === "NextRule") {
      notes.push(`${rule.name}: no candidate left (${decision.cause}), next rule`);
      continue;
    }
    return decision;
  }
  return route(DEFAULT_RULE, DEFAULT_ROUTE, facts, candidatesOf, notes);
}

function route<C extends Candidate>(
  rule: string,
  action: CompiledRoute,
  facts: RequestFacts,
  candidatesOf: CandidatesOf<C>,
  notes: string[],
): PolicyDecision<C> {
  const considered = consider(action, facts, candidatesOf);
  const dropped: { candidate: Candidate; by: CompiledExclusion }[] = [];
  let left = considered;
  for (const exclusion of action.exclude) {
    const applies = exclusion.if(facts);
    if (applies === false) continue;
    if (applies === undefined) notes.push(`${exclusion.name}: condition cannot be told, taken as true`);
    left = left.filter((candidate) => {
      if (exclusion.drop(candidate) === false) return true;
      dropped.push({ candidate, by: exclusion });
      return false;
    });
  }
  const ranking = rank(
    action,
    left.filter((candidate) => candidate.healthy),
  );
  if (ranking.length > 0) return { kind: "route", rule, ranking, notes };
  return { kind: "empty", rule, cause: emptyCause(action, considered, left, dropped), notes };
}

function consider<C extends Candidate>(action: CompiledRoute, facts: RequestFacts, candidatesOf: CandidatesOf<C>): C[] {
  if (action.consider === undefined) return [...candidatesOf(facts.model)];
  const all = action.consider.flatMap((source) =>
    source.models.flatMap((model) => candidatesOf(model).filter((candidate) => source.backend(candidate) === true)),
  );
  return [...new Set(all)];
}

function rank<C extends Candidate>(action: CompiledRoute, candidates: readonly C[]): C[] {
  return [...new Set(action.select.flatMap((stage) => stage(candidates)))];
}

function emptyCause(
  action: CompiledRoute,
  considered: readonly Candidate[],
  left: readonly Candidate[],
  dropped: readonly { candidate: Candidate; by: CompiledExclusion }[],
): EmptyCause {
  if (considered.length === 0) return "unknown-model";
  if (dropped.some(({ candidate, by }) => candidate.healthy && by.looksAtLoad)) return "overload";
  // Would the rule have used what is left, if only it were well?
  if (rank(action, left).length > 0) return "unhealthy";
  return "policy";
}
