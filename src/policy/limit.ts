import type { LimitAction } from "../api/inference-policy.ts";
import { parseQuantity } from "../api/quantity.ts";
import type { RequestFacts } from "./facts.ts";

export interface CompiledLimit {
  /** `namespace/policy/rule`: whose counters these are. */
  readonly name: string;
  readonly tokens: LimitAction["tokens"];
  readonly quantity: number;
  readonly windowMs: number;
  readonly onExceed: "Reject" | "NextRule";
  /** Which of its counters a request is charged to. */
  subject(facts: RequestFacts): string;
}

/** A counter that a request is charged to when the decision stands. */
export interface Charge {
  readonly limit: CompiledLimit;
  readonly subject: string;
}

/** Whether a charge would go beyond its limit: the milliseconds until its window ends, or undefined if it would not. */
export type LimitProbe = (charge: Charge) => number | undefined;

export function compileLimit(limit: LimitAction, name: string): CompiledLimit {
  const { per, header = "", tokens, quantity, window, onExceed = "Reject" } = limit;
  const key = header.toLowerCase();
  return {
    name,
    tokens,
    quantity: parseQuantity(quantity),
    windowMs: parseQuantity(window),
    onExceed,
    subject: (facts) => {
      if (per === "Tenant") return facts.tenant;
      if (per === "Model") return facts.model;
      // All requests without the header share one counter: leaving it out is no way around a limit.
      return facts.headers.get(key) ?? "";
    },
  };
}
