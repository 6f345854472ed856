import type { Candidate, Verdict } from "./facts.ts";

/** What became of one rule. */
export interface RuleTrace {
  rule: string;
  /** `null`: could not be told. */
  holds: boolean | null;
  /** For each alternative, the fields that did not hold; `?` behind those that could not be told. */
  failing: string[][];
  /** What followed. */
  outcome: string;
}

/** What became of one candidate under the rule that decided. */
export interface CandidateTrace {
  model: string;
  backend: string;
  type: string;
  /** Its place in the ranking, from 1. */
  place?: number;
  /** Why it is not in the ranking. */
  lost?: string;
  /** What it was ranked by, and its value. */
  rankedBy?: string;
  value?: number;
}

/** Collects how a decision came about. Given to `evaluate` only where somebody will read it. */
export class PolicyTrace {
  readonly rules: RuleTrace[] = [];
  candidates: CandidateTrace[] = [];

  rule(rule: string, holds: Verdict, failing: string[][], outcome: string): void {
    this.rules.push({ rule, holds: holds ?? null, failing, outcome });
  }

  /** A rule looks at candidates: those of a rule before it lost all of theirs. */
  startCandidates(candidates: readonly Candidate[]): void {
    this.candidates = candidates.map(({ model, name, type }) => ({ model, backend: name, type }));
  }

  of(candidate: Candidate): CandidateTrace | undefined {
    return this.candidates.find((c) => c.model === candidate.model && c.backend === candidate.name);
  }
}
