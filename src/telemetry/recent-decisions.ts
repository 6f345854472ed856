import type { DecisionExplanation } from "./explanation.ts";
import type { DecisionRecord, OutcomeRecord, Recorder } from "./records.ts";

export interface RecentDecision {
  decision: DecisionRecord;
  outcome?: OutcomeRecord;
}

/** The last decisions, for the live state, and a live feed of those that ended. */
export class RecentDecisions implements Recorder {
  readonly #limit: number;
  readonly #byId = new Map<string, RecentDecision>();
  readonly #explanations = new Map<string, DecisionExplanation>();

  constructor(limit = 200) {
    this.#limit = limit;
  }

  list(): RecentDecision[] {
    return [...this.#byId.values()];
  }

  decided(decision: DecisionRecord): void {
    this.#byId.set(decision.id, { decision });
    if (this.#byId.size <= this.#limit) return;
    const oldest = this.#byId.keys().next().value;
    if (oldest !== undefined) this.#byId.delete(oldest);
  }

  ended(decision: DecisionRecord, outcome: OutcomeRecord): void {
    const entry = this.#byId.get(decision.id);
    if (entry !== undefined) entry.outcome = outcome;
  }

  refused(): void {}

  explained(explanation: DecisionExplanation): void {
    this.#explanations.set(explanation.id, explanation);
    const oldest = this.#explanations.keys().next().value;
    if (this.#explanations.size > this.#limit && oldest !== undefined) this.#explanations.delete(oldest);
  }

  /** By the decision's id, or by Envoy's request id. */
  explanation(id: string): DecisionExplanation | undefined {
    return this.#explanations.get(id) ?? [...this.#explanations.values()].findLast((e) => e.requestId === id);
  }
}

/** One recorder that tells several. */
export function recordToAll(recorders: readonly Recorder[]): Recorder {
  return {
    decided(decision) {
      for (const recorder of recorders) recorder.decided(decision);
    },
    ended(decision, outcome) {
      for (const recorder of recorders) recorder.ended(decision, outcome);
    },
    refused(refusal) {
      for (const recorder of recorders) recorder.refused(refusal);
    },
    explained(explanation) {
      for (const recorder of recorders) recorder.explained?.(explanation);
    },
    shadowed(shadow) {
      for (const recorder of recorders) recorder.shadowed?.(shadow);
    },
  };
}
