/**
 * Chooses the decisions that are explained: a share of all, and beside it a few each second, so that an operator who
 * asks about a request of a quiet system always finds it.
 */
export class ExplanationSampler {
  readonly #share: number;
  readonly #perSecond: number;
  readonly #now: () => number;
  readonly #random: () => number;
  #left: number;
  #refilledMs: number;

  /** @param share 0 to 1 */
  constructor(share: number, perSecond: number, now: () => number, random: () => number) {
    this.#share = share;
    this.#perSecond = perSecond;
    this.#now = now;
    this.#random = random;
    this.#left = perSecond;
    this.#refilledMs = now();
  }

  next(): boolean {
    const sampled = this.#share >= 1 || (this.#share > 0 && this.#random() < this.#share);
    const nowMs = this.#now();
    this.#left = Math.min(this.#perSecond, this.#left + ((nowMs - this.#refilledMs) / 1000) * this.#perSecond);
    this.#refilledMs = nowMs;
    if (sampled) return true;
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
