import { ErrorRate } from "../workers/error-rate.ts";

const FAILURES_TO_OPEN = 3;
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 120_000;
/** How much one observation moves the expected TTFT. */
const LEARNING_RATE = 0.2;

/** What is learned of a provider from its answers. Outlives changes of configuration. */
export class ProviderState {
  readonly errors = new ErrorRate();
  readonly #ttftMs = new Map<string, number>();
  #failuresInARow = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #pauseMs = FIRST_PAUSE_MS;

  /** After failures in a row it is left alone for a while; then the next request tries it. */
  healthy(nowMs: number): boolean {
    return nowMs >= this.#pausedUntilMs;
  }

  record(failed: boolean, nowMs: number): void {
    this.errors.record(failed, nowMs);
    if (!failed) {
      this.#failuresInARow = 0;
      this.#pauseMs = FIRST_PAUSE_MS;
      return;
    }
    this.#failuresInARow++;
    if (this.#failuresInARow < FAILURES_TO_OPEN || !this.healthy(nowMs)) return;
    this.#pausedUntilMs = nowMs + this.#pauseMs;
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
  }

  /** @param declaredMs what its declaration says to expect */
  expectedTtftMs(model: string, declaredMs: number): number {
    return this.#ttftMs.get(model) ?? declaredMs;
  }

  learnTtft(model: string, declaredMs: number, observedMs: number): void {
    const expected = this.expectedTtftMs(model, declaredMs);
    this.#ttftMs.set(model, expected + (observedMs - expected) * LEARNING_RATE);
  }
}
