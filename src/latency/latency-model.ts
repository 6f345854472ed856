import { LinearEstimator } from "./linear-estimator.ts";

/** What a worker would have to do before the first token, as known at the moment of the pick. */
export interface PrefillLoad {
  /** Prompt tokens of this request that are not in the worker's cache. */
  uncachedTokens: number;
  /** Uncached tokens of requests that are there already and have not produced a token yet. */
  queuedTokens: number;
  /** Requests that are producing tokens. */
  decoding: number;
  /** Requests ahead that the worker has no free sequence slot for. */
  waiting: number;
}

export interface LatencyPrediction {
  ttftMs: number;
  e2eMs: number;
}

/** Before the first sample: a mid-size GPU. Spreads are wide, so that few samples move them. */
const PRIOR = [
  { value: 15, spread: 60 }, // ms always
  { value: 80, spread: 150 }, // ms per 1,000 uncached tokens
  { value: 60, spread: 80 }, // ms per 1,000 tokens queued before it
  { value: 0.5, spread: 2 }, // ms per decoding request
  { value: 150, spread: 300 }, // ms per request waiting for a slot
];
const INITIAL_DECODE_MS = 2000;

/** Learns, per worker and model, how long the first token takes. Owned by the handler for the life of the process. */
export class LatencyModel {
  readonly #estimators = new Map<string, LinearEstimator>();
  readonly #pooled = new Map<string, LinearEstimator>();
  readonly #decodeMs = new Map<string, number>();
  readonly #features = new Float64Array(PRIOR.length);

  predict(worker: string, model: string, load: PrefillLoad): LatencyPrediction {
    this.#fill(load);
    const ttftMs = Math.max(0.1, this.#estimator(worker, model).predict(this.#features));
    return { ttftMs, e2eMs: ttftMs + (this.#decodeMs.get(model) ?? INITIAL_DECODE_MS) };
  }

  /** What a prompt token that is not cached costs, in milliseconds. */
  prefillMsPerToken(worker: string, model: string): number {
    return (this.#estimator(worker, model).coefficients[1] ?? 0) / 1000;
  }

  /** One first token: what the load was at the pick, and what it took. */
  learnTtft(worker: string, model: string, load: PrefillLoad, observedMs: number): void {
    this.#fill(load);
    const noise = Math.max(3, observedMs * 0.1);
    this.#estimator(worker, model).learn(this.#features, observedMs, noise);
    this.#pooledEstimator(model).learn(this.#features, observedMs, noise);
  }

  learnDecode(model: string, decodeMs: number): void {
    const known = this.#decodeMs.get(model) ?? decodeMs;
    this.#decodeMs.set(model, known + (decodeMs - known) * 0.05);
  }

  forget(worker: string): void {
    for (const key of this.#estimators.keys()) if (key.startsWith(`${worker}\n`)) this.#estimators.delete(key);
  }

  #fill(load: PrefillLoad): void {
    this.#features[0] = 1;
    this.#features[1] = load.uncachedTokens / 1000;
    this.#features[2] = load.queuedTokens / 1000;
    this.#features[3] = load.decoding;
    this.#features[4] = load.waiting;
  }

  #estimator(worker: string, model: string): LinearEstimator {
    const key = `${worker}\n${model}`;
    let estimator = this.#estimators.get(key);
    if (estimator === undefined) {
      // A new worker is first taken to be like the others of its model.
      const pooled = this.#pooledEstimator(model).coefficients;
      estimator = new LinearEstimator(PRIOR.map((p, i) => ({ value: pooled[i] ?? p.value, spread: p.spread })));
      this.#estimators.set(key, estimator);
    }
    return estimator;
  }

  #pooledEstimator(model: string): LinearEstimator {
    let estimator = this.#pooled.get(model);
    if (estimator === undefined) {
      estimator = new LinearEstimator(PRIOR);
      this.#pooled.set(model, estimator);
    }
    return estimator;
  }
}
