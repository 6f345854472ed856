import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { DecisionExplanation } from "../telemetry/explanation.ts";
import type { OutcomeRecord } from "../telemetry/records.ts";

/** A decision of a log, with what came of it if the log says so. */
export interface LoggedDecision {
  readonly explanation: DecisionExplanation;
  readonly outcome?: OutcomeRecord;
}

/**
 * Reads the decisions of a decision log in their order. A line that is none is counted and left out: the last line of a
 * log that is being written may be half of one.
 */
export async function readDecisionLog(path: string): Promise<{ decisions: LoggedDecision[]; unreadable: number }> {
  const explanations: DecisionExplanation[] = [];
  const outcomes = new Map<string, OutcomeRecord>();
  let unreadable = 0;
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line === "") continue;
    const value = parseLine(line);
    if (value === undefined) unreadable++;
    else if ("outcome" in value) outcomes.set(value.id, value.outcome);
    else explanations.push(value);
  }
  const decisions = explanations.map((explanation) => {
    const outcome = outcomes.get(explanation.id);
    return { explanation, ...(outcome === undefined ? {} : { outcome }) };
  });
  return { decisions, unreadable };
}

function parseLine(line: string): DecisionExplanation | { id: string; outcome: OutcomeRecord } | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null || !("id" in value)) return undefined;
    if ("outcome" in value) return value as { id: string; outcome: OutcomeRecord };
    const whole = ["request", "pools", "candidates", "decision"].every((field) => field in value);
    return whole ? (value as DecisionExplanation) : undefined;
  } catch {
    return undefined;
  }
}
