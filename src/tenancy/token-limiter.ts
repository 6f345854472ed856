/** One counter: whose, and how much of it a window allows. */
export interface Counter {
  /** Which limit, and who is counted under it. */
  readonly limit: string;
  readonly subject: string;
  readonly quantity: number;
  readonly windowMs: number;
}

/** What a request holds of a counter until it ends. */
export interface Hold {
  readonly counter: Counter;
  readonly amount: number;
  readonly windowStartMs: number;
}

interface Usage {
  windowStartMs: number;
  used: number;
}

/** Subjects may be header values of a client's choosing: beyond so many they share one counter. */
const MAX_COUNTERS = 100_000;

/**
 * Token budgets in fixed windows that begin at multiples of their length since 1970. A request is held at an estimate
 * and settled with what it used. Kept in memory: the counters of one replica.
 */
export class TokenLimiter {
  readonly #epochMs: () => number;
  readonly #counters = new Map<string, Usage>();

  constructor(epochMs: () => number) {
    this.#epochMs = epochMs;
  }

  /** Milliseconds until the window ends if `amount` more would exceed it; undefined if it would not. */
  exceededFor(counter: Counter, amount: number): number | undefined {
    const used = this.used(counter);
    // A cost is known only afterwards: such a request is admitted while anything is left.
    const exceeds = amount > 0 ? used + amount > counter.quantity : used >= counter.quantity;
    return exceeds ? this.resetsInMs(counter) : undefined;
  }

  hold(counter: Counter, amount: number): Hold {
    const usage = this.#current(counter);
    usage.used += amount;
    return { counter, amount, windowStartMs: usage.windowStartMs };
  }

  /** Replaces the estimate by what was used; 0 refunds. After the window's end nothing is left to correct. */
  settle(hold: Hold, used: number): void {
    const usage = this.#counters.get(this.#keyOf(hold.counter));
    if (usage === undefined || usage.windowStartMs !== hold.windowStartMs) return;
    usage.used = Math.max(0, usage.used + used - hold.amount);
  }

  used(counter: Counter): number {
    const usage = this.#counters.get(this.#keyOf(counter));
    return usage === undefined || usage.windowStartMs !== this.#windowStart(counter) ? 0 : usage.used;
  }

  resetsInMs(counter: Counter): number {
    return this.#windowStart(counter) + counter.windowMs - this.#epochMs();
  }

  /** Forgets counters whose window is over. Called now and then. */
  sweep(longestWindowMs: number): void {
    const oldest = this.#epochMs() - longestWindowMs;
    for (const [key, { windowStartMs }] of this.#counters) if (windowStartMs < oldest) this.#counters.delete(key);
  }

  #current(counter: Counter): Usage {
    const key = this.#keyOf(counter);
    const windowStartMs = this.#windowStart(counter);
    let usage = this.#counters.get(key);
    if (usage === undefined || usage.windowStartMs !== windowStartMs) {
      usage = { windowStartMs, used: 0 };
      this.#counters.set(key, usage);
    }
    return usage;
  }

  #keyOf({ limit, subject }: Counter): string {
    const key = `${limit}\n${subject}`;
    return this.#counters.size < MAX_COUNTERS || this.#counters.has(key) ? key : `${limit}\n(others)`;
  }

  #windowStart({ windowMs }: Counter): number {
    return Math.floor(this.#epochMs() / windowMs) * windowMs;
  }
}
