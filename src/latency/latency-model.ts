import { LinearEstimator } from "./linear-estimator.ts";

/** What a worker would have to do before the first token, as known at the moment of the pick. */
export interface PrefillLoad {
  /** Prompt tokens of this request that are not in the worker's cache. */
  uncachedTokens: number;
  /** Uncached tokens of requests that are there already and have not produced a token yet. */
  queuedTokens: number;
  /** Requests that are producing tokens. */
  decoding: number;
  /** Requests of any kind that are there already. */
  inFlight: number;
  /** Requests ahead, this one included, that the worker has no free sequence slot for. */
  waiting: number;
  /** Sequences that the worker runs at once; infinite if no queue has shown it. */
  slots: number;
}

export interface LatencyPrediction {
  ttftMs: number;
  e2eMs: number;
  /** What the request would cost those who are there already, in milliseconds of theirs. */
  harmMs: number;
}

/** Before the first sample: a small GPU, so that what is cached counts. Spreads are wide, so that few samples move them. */
const TTFT_PRIOR = [
  { value: 15, spread: 60 }, // ms always
  { value: 200, spread: 200 }, // ms per 1,000 uncached tokens
  { value: 2, spread: 10 }, // more of these for each request in flight there: contention
  { value: 60, spread: 80 }, // ms per 1,000 tokens queued before it
  { value: 0.5, spread: 2 }, // ms per decoding request
  { value: 1, spread: 1 }, // ms per ms until enough of those who run have ended, taken that they end evenly
];
const ITL_PRIOR = [
  { value: 15, spread: 20 }, // ms between tokens of a request alone
  { value: 0.2, spread: 1 }, // more for each request beside it
];
const INITIAL_OUTPUT_TOKENS = 100;
const OUTPUT_MEMORY = 0.05;
/** How fast a worker's own speed is believed, and from what difference on: noise must not make everyone's favourite. */
const SPEED_MEMORY = 0.12;
const SPEED_DEADBAND = 0.12;
/** Harm is counted once this many answers have shown how much a neighbour slows them; a guess must not move anybody. */
const HARM_FROM_SAMPLES = 10;
/** A delay of others counts less than the request's own: it is spread over their whole answers. */
const HARM_WEIGHT = 0.5;

interface ModelLatency {
  ttft: LinearEstimator;
  itl: LinearEstimator;
  outputTokens: number;
}

/**
 * Learns how long first tokens take. The shape is learned per model from all its workers; how fast one worker is beside
 * the others, from its own requests. Owned by the handler for the life of the process.
 */
export class LatencyModel {
  readonly #models = new Map<string, ModelLatency>();
  /** Natural logarithm of observed over predicted, by worker and model. */
  readonly #slowness = new Map<string, number>();
  readonly #ttftFeatures = new Float64Array(TTFT_PRIOR.length);
  readonly #itlFeatures = new Float64Array(ITL_PRIOR.length);

  predict(worker: string, model: string, load: PrefillLoad): LatencyPrediction {
    const { ttft, itl, outputTokens } = this.#model(model);
    const pace = this.#pace(worker, model);
    this.#fillTtft(model, load);
    const ttftMs = Math.max(0.1, ttft.predict(this.#ttftFeatures)) * pace;
    const prefillMs = ((ttft.coefficients[1] ?? 0) * load.uncachedTokens * pace) / 1000;
    const slowdownMs = (itl.coefficients[1] ?? 0) * (outputTokens / 2);
    // While a prompt is prefilled the others' tokens come slower, and afterwards there is one more to share each step with.
    const weight = itl.samples < HARM_FROM_SAMPLES ? 0 : HARM_WEIGHT;
    const harmMs = weight * load.decoding * (slowdownMs + prefillMs / Math.max(4, load.inFlight));
    return { ttftMs, e2eMs: ttftMs + this.#decodeMs(model, load.decoding), harmMs };
  }

  /** What a prompt token that is not cached costs, in milliseconds. */
  prefillMsPerToken(worker: string, model: string): number {
    return ((this.#model(model).ttft.coefficients[1] ?? 0) * this.#pace(worker, model)) / 1000;
  }

  /** One first token: what the load was at the pick, and what it took. */
  learnTtft(worker: string, model: string, load: PrefillLoad, observedMs: number): void {
    const { ttft } = this.#model(model);
    this.#fillTtft(model, load);
    const key = `${worker}\n${model}`;
    const slowness = this.#slowness.get(key) ?? 0;
    const expectedMs = Math.max(0.1, ttft.predict(this.#ttftFeatures));
    if (ttft.samples >= 10) {
      const ratio = Math.max(-1.5, Math.min(1.5, Math.log(observedMs / expectedMs)));
      this.#slowness.set(key, slowness + (ratio - slowness) * SPEED_MEMORY);
    }
    const ownMs = observedMs / this.#pace(worker, model);
    ttft.learn(this.#ttftFeatures, ownMs, Math.max(3, ownMs * 0.1));
  }

  /** One finished answer: its tokens, and how long they took after the first. */
  learnDecode(model: string, load: PrefillLoad, outputTokens: number, decodeMs: number): void {
    const latency = this.#model(model);
    latency.outputTokens += (outputTokens - latency.outputTokens) * OUTPUT_MEMORY;
    if (outputTokens < 4) return;
    const itlMs = decodeMs / (outputTokens - 1);
    this.#fillItl(load.decoding);
    latency.itl.learn(this.#itlFeatures, itlMs, Math.max(0.5, itlMs * 0.1));
  }

  forget(worker: string): void {
    for (const key of this.#slowness.keys()) if (key.startsWith(`${worker}\n`)) this.#slowness.delete(key);
  }

  #pace(worker: string, model: string): number {
    const slowness = this.#slowness.get(`${worker}\n${model}`) ?? 0;
    return Math.abs(slowness) < SPEED_DEADBAND ? 1 : Math.exp(slowness);
  }

  #fillTtft(model: string, load: PrefillLoad): void {
    this.#ttftFeatures[0] = 1;
    this.#ttftFeatures[1] = load.uncachedTokens / 1000;
    this.#ttftFeatures[2] = (load.uncachedTokens / 1000) * load.inFlight;
    this.#ttftFeatures[3] = load.queuedTokens / 1000;
    this.#ttftFeatures[4] = load.decoding;
    this.#ttftFeatures[5] = load.waiting === 0 ? 0 : (load.waiting / load.slots) * this.#decodeMs(model, load.slots);
  }

  /** How long an answer takes after its first token, beside `decoding` others. */
  #decodeMs(model: string, decoding: number): number {
    const { itl, outputTokens } = this.#model(model);
    this.#fillItl(decoding);
    return itl.predict(this.#itlFeatures) * outputTokens;
  }

  #fillItl(decoding: number): void {
    this.#itlFeatures[0] = 1;
    this.#itlFeatures[1] = decoding;
  }

  #model(model: string): ModelLatency {
    let latency = this.#models.get(model);
    if (latency === undefined) {
      latency = {
        ttft: new LinearEstimator(TTFT_PRIOR),
        itl: new LinearEstimator(ITL_PRIOR),
        outputTokens: INITIAL_OUTPUT_TOKENS,
      };
      this.#models.set(model, latency);
    }
    return latency;
  }
}
