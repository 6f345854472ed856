/** An outcome counts half after this time. */
const HALF_LIFE_MS = 30_000;

/** The share of recent requests that failed, old ones counting less and less. */
export class ErrorRate {
  #failures = 0;
  #total = 0;
  #atMs = 0;

  record(failed: boolean, nowMs: number): void {
    this.#decay(nowMs);
    this.#total += 1;
    if (failed) this.#failures += 1;
  }

  /** 0 to 1; 0 while nothing failed. One failure alone is half a rate: the next request may be well. */
  rate(nowMs: number): number {
    if (this.#failures === 0) return 0;
    this.#decay(nowMs);
    return this.#failures / Math.max(this.#total, 2);
  }

  #decay(nowMs: number): void {
    const factor = 0.5 ** (Math.max(0, nowMs - this.#atMs) / HALF_LIFE_MS);
    this.#failures *= factor;
    this.#total *= factor;
    this.#atMs = nowMs;
  }
}
