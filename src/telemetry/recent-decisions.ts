import type { DecisionRecord, OutcomeRecord, Recorder } from "./records.ts";

export interface RecentDecision {
  decision: DecisionRecord;
  outcome?: OutcomeRecord;
}

/** The last decisions, for the live state, and a live feed of those that ended. */
export class RecentDecisions implements Recorder {
  readonly #limit: number;
  readonly #byId = new Map<string, RecentDecision>();

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
  };
}
