import type { RejectAction } from "../api/inference-policy.ts";
import type { CompiledExclusion, CompiledRoute, CompiledRule } from "./compile.ts";
import type { Candidate, RequestFacts, Verdict } from "./facts.ts";
import type { Charge, LimitProbe } from "./limit.ts";
import { anyOf } from "./match.ts";
import { compileStage, DEFAULT_SELECT } from "./select.ts";
import type { PolicyTrace } from "./trace.ts";

/** Where candidates come from. */
export interface CandidateSupply<C extends Candidate> {
  /** Every candidate for a model, healthy or not. */
  of(model: string): readonly C[];
  /** Every model that somebody serves. */
  servedModels(): readonly string[];
  /** Whether a charge would exceed its limit. */
  exceeds: LimitProbe;
}

export type PolicyDecision<C extends Candidate> =
  | {
      kind: "route";
      rule: string;
      /** Best first; the rest are fallbacks. */
      ranking: C[];
      /** Counters that the request is charged to. */
      charges: Charge[];
      shadow: CompiledRoute["shadow"];
      notes: string[];
    }
  | { kind: "reject"; rule: string; reject: RejectAction; notes: string[] }
  | { kind: "limited"; rule: string; charge: Charge; retryAfterMs: number; notes: string[] }
  | { kind: "empty"; rule: string; cause: EmptyCause; notes: string[] };

/** Why nothing is left: nobody has the model, nobody is well, everybody is too busy, or it is forbidden. */
export type EmptyCause = "unknown-model" | "unhealthy" | "overload" | "policy";

export const DEFAULT_RULE = "default";
const DEFAULT_ROUTE: CompiledRoute = {
  consider: undefined,
  exclude: [],
  select: DEFAULT_SELECT.map(compileStage),
  onEmpty: "Reject",
  shadow: undefined,
};

/**
 * Tries the rules in order for one model; the first that holds decides. Pure: the same facts and candidates give the
 * same decision.
 */
export function evaluate<C extends Candidate>(
  rules: readonly CompiledRule[],
  facts: RequestFacts,
  supply: CandidateSupply<C>,
  trace?: PolicyTrace,
): PolicyDecision<C> {
  const notes: string[] = [];
  const charges: Charge[] = [];
  for (const rule of rules) {
    const holds = rule.matches === undefined ? true : anyOf(rule.matches, (match) => match.holds(facts));
    if (holds === false) {
      trace?.rule(rule.name, holds, failing(rule, facts), "does not match");
      continue;
    }
    if (rule.reject !== undefined) {
      // What cannot be told is taken to hold where that refuses, and not to hold where it would allow.
      if (holds === undefined) notes.push(`${rule.name}: match cannot be told, taken as true`);
      trace?.rule(rule.name, holds, failing(rule, facts), "rejects");
      return { kind: "reject", rule: rule.name, reject: rule.reject, notes };
    }
    // A limit without a route restricts: it is charged even if its match cannot be told.
    if (holds === undefined && rule.route !== undefined) {
      notes.push(`${rule.name}: match cannot be told, taken as false`);
      trace?.rule(rule.name, holds, failing(rule, facts), "cannot be told, taken as false");
      continue;
    }
    const charge = rule.limit && { limit: rule.limit, subject: rule.limit.subject(facts) };
    const retryAfterMs = charge && supply.exceeds(charge);
    if (charge !== undefined && retryAfterMs !== undefined) {
      if (charge.limit.onExceed === "Reject") {
        trace?.rule(rule.name, holds, [], "limit reached: rejects");
        return { kind: "limited", rule: rule.name, charge, retryAfterMs, notes };
      }
      notes.push(`${rule.name}: limit reached, next rule`);
      trace?.rule(rule.name, holds, [], "limit reached: next rule");
      continue;
    }
    if (rule.route === undefined) {
      if (charge !== undefined) charges.push(charge);
      trace?.rule(rule.name, holds, [], "within its limit: goes on");
      continue;
    }
    const decision = route(rule.name, rule.route, facts, supply, notes, trace);
    if (decision.kind === "empty" && rule.route.onEmpty === "NextRule") {
      notes.push(`${rule.name}: no candidate left (${decision.cause}), next rule`);
      trace?.rule(rule.name, holds, [], `no candidate left (${decision.cause}): next rule`);
      continue;
    }
    trace?.rule(rule.name, holds, [], decision.kind === "route" ? "routes" : `no candidate left (${decision.cause})`);
    if (decision.kind === "route") decision.charges = charge === undefined ? charges : [...charges, charge];
    return decision;
  }
  const decision = route(DEFAULT_RULE, DEFAULT_ROUTE, facts, supply, notes, trace);
  trace?.rule(DEFAULT_RULE, true, [], decision.kind === "route" ? "routes" : "no candidate left");
  if (decision.kind === "route") decision.charges = charges;
  return decision;
}

function failing(rule: CompiledRule, facts: RequestFacts): string[][] {
  return (rule.matches ?? []).map((match) => match.failing(facts));
}

function route<C extends Candidate>(
  rule: string,
  action: CompiledRoute,
  facts: RequestFacts,
  supply: CandidateSupply<C>,
  notes: string[],
  trace: PolicyTrace | undefined,
): PolicyDecision<C> & { kind: "route" | "empty" } {
  const considered = consider(action, facts, supply);
  trace?.startCandidates(considered);
  const dropped: { candidate: Candidate; by: CompiledExclusion }[] = [];
  let left = considered;
  for (const exclusion of action.exclude) {
    const applies: Verdict = exclusion.if === undefined ? true : exclusion.if.holds(facts);
    if (applies === false) continue;
    if (applies === undefined) notes.push(`${exclusion.name}: condition cannot be told, taken as true`);
    left = left.filter((candidate) => {
      const drop = exclusion.drop.holds(candidate);
      if (drop === false) return true;
      dropped.push({ candidate, by: exclusion });
      const row = trace?.of(candidate);
      if (row) row.lost = `dropped by ${exclusion.name}${drop === undefined ? " (its state is unknown)" : ""}`;
      return false;
    });
  }
  const ranking = rank(
    action,
    left.filter((candidate) => candidate.healthy),
  );
  if (trace !== undefined) traceRanking(trace, action, left, ranking);
  if (ranking.length > 0) return { kind: "route", rule, ranking, charges: [], shadow: action.shadow, notes };
  return { kind: "empty", rule, cause: emptyCause(action, considered, left, dropped), notes };
}

function consider<C extends Candidate>(action: CompiledRoute, facts: RequestFacts, supply: CandidateSupply<C>): C[] {
  if (action.consider === undefined) return [...supply.of(facts.model)];
  const all = action.consider.flatMap((source) => {
    const models = source.listed ?? supply.servedModels().filter(source.model);
    return models.flatMap((model) => supply.of(model).filter((candidate) => source.backend.holds(candidate) === true));
  });
  return [...new Set(all)];
}

function rank<C extends Candidate>(action: CompiledRoute, candidates: readonly C[]): C[] {
  const [only] = action.select;
  if (only !== undefined && action.select.length === 1) return only.rank(candidates);
  return [...new Set(action.select.flatMap((stage) => stage.rank(candidates)))];
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

function traceRanking(
  trace: PolicyTrace,
  action: CompiledRoute,
  left: readonly Candidate[],
  ranking: readonly Candidate[],
): void {
  for (const candidate of left) {
    const row = trace.of(candidate);
    if (row === undefined) continue;
    const place = ranking.indexOf(candidate);
    if (!candidate.healthy) row.lost = "not healthy";
    else if (place < 0) row.lost = action.select.map((stage) => stage.leavesOut(candidate)).join("; ");
    else {
      const stage = action.select.find((s) => s.leavesOut(candidate) === undefined);
      row.place = place + 1;
      if (stage !== undefined && stage.by !== "") row.rankedBy = stage.by;
      if (stage?.value !== undefined) row.value = stage.value(candidate);
    }
  }
}
