import type { Charge } from "../policy/limit.ts";
import type { Counter, Hold, TokenLimiter } from "../tenancy/token-limiter.ts";

/** Output tokens to expect of a request without a cap, and the most that is held for one with a cap. */
const EXPECTED_OUTPUT_TOKENS = 256;
const MOST_HELD_OUTPUT_TOKENS = 4096;

/** What a request is expected to use. */
export interface Expected {
  promptTokens: number;
  maxTokens: number | undefined;
}

/** What a request used. */
export interface Used {
  promptTokens: number;
  outputTokens: number;
  /** US dollars. */
  cost: number;
}

/** Output tokens to presume of a request. */
export function expectedOutputTokens(maxTokens: number | undefined): number {
  return Math.min(maxTokens ?? EXPECTED_OUTPUT_TOKENS, MOST_HELD_OUTPUT_TOKENS);
}

export function counterOf({ limit, subject }: Charge): Counter {
  return { limit: limit.name, subject, quantity: limit.quantity, windowMs: limit.windowMs };
}

/** What is held for a request until it ends. A cost is known only then. */
export function estimateOf(charge: Charge, { promptTokens, maxTokens }: Expected): number {
  const outputTokens = expectedOutputTokens(maxTokens);
  return { Input: promptTokens, Output: outputTokens, Total: promptTokens + outputTokens, Cost: 0 }[
    charge.limit.tokens
  ];
}

/** The holds of one request on the counters that its decision charged. */
export class Charges {
  readonly #limiter: TokenLimiter;
  readonly #held: readonly { charge: Charge; hold: Hold }[];
  readonly expected: Expected;

  constructor(limiter: TokenLimiter, charges: readonly Charge[], expected: Expected) {
    this.#limiter = limiter;
    this.expected = expected;
    this.#held = charges.map((charge) => ({
      charge,
      hold: limiter.hold(counterOf(charge), estimateOf(charge, expected)),
    }));
  }

  /** @param used undefined when the request failed: all is refunded */
  settle(used: Used | undefined): void {
    for (const { charge, hold } of this.#held) {
      this.#limiter.settle(hold, used === undefined ? 0 : amountOf(charge, used));
    }
  }

  /** The customary headers, about the counter that has least left; none if the request was not charged. */
  headers(): Record<string, string> {
    const tightest = this.#held
      .map(({ charge }) => charge)
      .sort((a, b) => this.#left(a) / a.limit.quantity - this.#left(b) / b.limit.quantity)[0];
    return tightest === undefined ? {} : limitHeaders(this.#limiter, tightest);
  }

  #left(charge: Charge): number {
    return charge.limit.quantity - this.#limiter.used(counterOf(charge));
  }
}

function amountOf(charge: Charge, { promptTokens, outputTokens, cost }: Used): number {
  return { Input: promptTokens, Output: outputTokens, Total: promptTokens + outputTokens, Cost: cost }[
    charge.limit.tokens
  ];
}

/** `x-ratelimit-*` as OpenAI's clients read them: limit, what is left of it, and the seconds until it is full again. */
export function limitHeaders(limiter: TokenLimiter, charge: Charge): Record<string, string> {
  const counter = counterOf(charge);
  const what = charge.limit.tokens === "Cost" ? "cost" : "tokens";
  const left = Math.max(0, counter.quantity - limiter.used(counter));
  return {
    [`x-ratelimit-limit-${what}`]: String(counter.quantity),
    [`x-ratelimit-remaining-${what}`]: what === "cost" ? left.toFixed(4) : String(Math.floor(left)),
    [`x-ratelimit-reset-${what}`]: `${Math.ceil(limiter.resetsInMs(counter) / 1000)}s`,
  };
}
