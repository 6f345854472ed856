/**
 * Recursive least squares with forgetting (Haykin, Adaptive Filter Theory, ch. 10) for y = Σ coefficient · feature, with
 * coefficients held at or above zero and outliers clipped. A few dozen multiplications a sample.
 */
export class LinearEstimator {
  readonly coefficients: Float64Array;
  readonly #covariance: Float64Array;
  readonly #forgetting: number;
  readonly #gain: Float64Array;
  #meanError: number;
  #samples = 0;

  /**
   * @param prior starting coefficients, and how far each may plausibly be off
   * @param forgetting weight of the past per sample, e.g. 0.99 for a memory of about 100 samples
   */
  constructor(prior: readonly { value: number; spread: number }[], forgetting = 0.99) {
    const size = prior.length;
    this.coefficients = Float64Array.from(prior, (p) => p.value);
    this.#covariance = new Float64Array(size * size);
    prior.forEach((p, i) => {
      this.#covariance[i * size + i] = p.spread * p.spread;
    });
    this.#gain = new Float64Array(size);
    this.#forgetting = forgetting;
    this.#meanError = 0;
  }

  get samples(): number {
    return this.#samples;
  }

  predict(features: Float64Array): number {
    let sum = 0;
    for (let i = 0; i < features.length; i++) sum += (this.coefficients[i] ?? 0) * (features[i] ?? 0);
    return sum;
  }

  /** @param noise expected spread of `observed` around the line, in its unit: larger means slower learning */
  learn(features: Float64Array, observed: number, noise: number): void {
    const size = features.length;
    const residual = observed - this.predict(features);
    const limit = 4 * Math.max(noise, this.#meanError);
    const clipped = this.#samples < 5 ? residual : Math.max(-limit, Math.min(limit, residual));
    this.#meanError += (Math.min(Math.abs(residual), limit) - this.#meanError) / Math.min(20, this.#samples + 1);
    this.#samples++;
    let denominator = this.#forgetting * noise * noise;
    for (let i = 0; i < size; i++) {
      let row = 0;
      for (let j = 0; j < size; j++) row += (this.#covariance[i * size + j] ?? 0) * (features[j] ?? 0);
      this.#gain[i] = row;
      denominator += row * (features[i] ?? 0);
    }
    for (let i = 0; i < size; i++) {
      this.coefficients[i] = Math.max(0, (this.coefficients[i] ?? 0) + ((this.#gain[i] ?? 0) / denominator) * clipped);
    }
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) {
        const at = i * size + j;
        const shrunk = (this.#covariance[at] ?? 0) - ((this.#gain[i] ?? 0) * (this.#gain[j] ?? 0)) / denominator;
        // Forgetting must not let the spread of a feature that is never seen grow without bound.
        this.#covariance[at] = Math.abs(shrunk) < 1e8 ? shrunk / this.#forgetting : shrunk;
      }
    }
  }
}
