import type { Price } from "../api/inference-provider.ts";
import { buildPromptChain, type PromptChain } from "../kvcache/prompt-chain.ts";
import type { PrefillLoad } from "../latency/latency-model.ts";
import type { CandidateSupply } from "../policy/evaluate.ts";
import type { Candidate, PoolState } from "../policy/facts.ts";
import type { LimitProbe } from "../policy/limit.ts";
import type { InferenceRequest } from "../protocols/protocol.ts";
import { costOf } from "../providers/cost.ts";
import type { Provider } from "../providers/provider.ts";
import type { Worker } from "../workers/worker.ts";
import type { Fleet } from "./fleet.ts";

/** A candidate with what it takes to send the request there. */
export interface LocalCandidate extends Candidate {
  type: "Local";
  worker: Worker;
  chain: PromptChain;
  promptTokens: number;
  load: PrefillLoad;
  /** What its model costs, if that is known. */
  price: Price | undefined;
}
export interface ProviderCandidate extends Candidate {
  type: "Provider";
  provider: Provider;
  promptTokens: number;
}
export type BackendCandidate = LocalCandidate | ProviderCandidate;

/** Who may serve a request: the workers of its route's pools (within Envoy's subset, if any), and the providers. */
export interface Scope {
  pools: ReadonlySet<string> | undefined;
  subset: readonly string[] | undefined;
  providers: readonly Provider[];
  /** What local models cost. */
  prices: ReadonlyMap<string, Price>;
}

const EXPECTED_OUTPUT_TOKENS = 300;
/** What a second copy of a whole prompt costs at least: small differences must not scatter conversations. */
const COPY_COST_MS = 60;
/** How likely it is that what a new prompt evicts would have been used again. */
const REUSE_PROBABILITY = 0.25;

/** Finds the candidates of one request. Each model is looked at once, however many rules ask. */
export class CandidateFinder implements CandidateSupply<BackendCandidate> {
  readonly #fleet: Fleet;
  readonly #scope: Scope;
  readonly #request: InferenceRequest;
  readonly #nowMs: number;
  readonly #rotation: number;
  readonly #chains = new Map<string, PromptChain>();
  readonly #found = new Map<string, BackendCandidate[]>();
  readonly exceeds: LimitProbe;

  /** @param rotation changes with each request, so that equal workers take turns */
  constructor(
    fleet: Fleet,
    scope: Scope,
    request: InferenceRequest,
    nowMs: number,
    rotation: number,
    exceeds: LimitProbe,
  ) {
    this.exceeds = exceeds;
    this.#fleet = fleet;
    this.#scope = scope;
    this.#request = request;
    this.#nowMs = nowMs;
    this.#rotation = rotation;
  }

  /** The prompt's chain for a model: models share nothing in a cache. */
  chainFor(model: string): PromptChain {
    let chain = this.#chains.get(model);
    if (chain === undefined) {
      const { segments, promptTokenIds, cacheSalt = "" } = this.#request;
      chain = buildPromptChain({
        segments,
        seed: `${model}\n${cacheSalt}`,
        ...(promptTokenIds ? { promptTokenIds } : {}),
      });
      this.#chains.set(model, chain);
    }
    return chain;
  }

  /** An estimate of the prompt's length from its text alone. */
  promptTokens(model: string): number {
    const chain = this.chainFor(model);
    const text = chain.exactTokens
      ? chain.characters
      : chain.characters / this.#fleet.ratioOf(model).charactersPerToken;
    return Math.max(1, Math.round(text + chain.imageTokens));
  }

  of(model: string): readonly BackendCandidate[] {
    let candidates = this.#found.get(model);
    if (candidates === undefined) {
      candidates = [...this.#local(model), ...this.#outside(model)];
      this.#found.set(model, candidates);
    }
    return candidates;
  }

  poolKeys(): readonly string[] {
    return [...new Set(this.#workers().map((worker) => worker.pool))];
  }

  servedModels(): readonly string[] {
    const local = this.#workers().flatMap((worker) => [...worker.models.keys()]);
    const outside = this.#providers().flatMap((provider) => [...provider.models.keys()]);
    return [...new Set([...local, ...outside])];
  }

  /** What the healthy workers of the route's pools do as a whole, or those of one pool by its name. */
  pool(name: string | undefined): PoolState {
    const workers = this.#workers().filter(
      (worker) => worker.healthy && (name === undefined || worker.pool.endsWith(`/${name}`)),
    );
    const usages = workers.map((worker) => worker.kvCacheUsage(this.#nowMs));
    return {
      queuedPrompts: sum(workers.map((worker) => worker.queuedPrompts(this.#nowMs))),
      runningPrompts: sum(workers.map((worker) => worker.runningPrompts(this.#nowMs))),
      kvCacheUsage: workers.length === 0 ? undefined : mean(usages),
      healthyWorkers: workers.length,
    };
  }

  #workers(): Worker[] {
    const { pools, subset } = this.#scope;
    return [...this.#fleet.workers.all()].filter(
      (worker) => (pools === undefined || pools.has(worker.pool)) && inSubset(worker.address, subset),
    );
  }

  /** A provider that does not take the request's API is no candidate. */
  #providers(): Provider[] {
    return this.#scope.providers.filter((provider) => provider.takes(this.#request.api));
  }

  #local(model: string): LocalCandidate[] {
    const workers = this.#workers().filter((worker) => worker.models.has(model));
    const first = workers.length > 0 ? this.#rotation % workers.length : 0;
    const candidates = [...workers.slice(first), ...workers.slice(0, first)].map((worker) =>
      this.#assess(worker, model),
    );
    const mostCached = candidates.reduce((most, candidate) => Math.max(most, candidate.cachedTokens), 0);
    for (const candidate of candidates) {
      candidate.harmMs += (COPY_COST_MS * (mostCached - candidate.cachedTokens)) / candidate.promptTokens;
    }
    return candidates;
  }

  #assess(worker: Worker, model: string): LocalCandidate {
    worker.advance(this.#nowMs);
    const chain = this.chainFor(model);
    const cache = this.#fleet.cacheOf(worker);
    const { cachedTokens, promptTokens } = cache.match(chain, this.#fleet.ratioOf(model).charactersPerToken);
    const uncachedTokens = promptTokens - cachedTokens;
    const load: PrefillLoad = {
      uncachedTokens,
      queuedTokens: worker.queuedTokens,
      decoding: worker.decoding,
      inFlight: worker.inFlight,
      waiting: worker.waitingForSlot(),
      slots: worker.slots,
    };
    const { ttftMs, e2eMs, harmMs } = this.#fleet.latency.predict(worker.address, model, load);
    const msPerToken = this.#fleet.latency.prefillMsPerToken(worker.address, model);
    const evictedTokens = Math.max(0, cache.usedTokens + uncachedTokens - cache.capacityTokens);
    return {
      model,
      type: "Local",
      name: worker.name,
      labels: worker.labels,
      errorRate: worker.errors.rate(this.#nowMs),
      healthy: worker.healthy,
      queuedPrompts: worker.queuedPrompts(this.#nowMs),
      runningPrompts: worker.runningPrompts(this.#nowMs),
      kvCacheUsage: worker.kvCacheUsage(this.#nowMs),
      predictedTtftMs: ttftMs,
      predictedE2eMs: e2eMs,
      harmMs: harmMs + REUSE_PROBABILITY * Math.min(evictedTokens, uncachedTokens) * msPerToken,
      cachedTokens,
      cost: costOf(this.#scope.prices.get(model), promptTokens, cachedTokens, this.#outputTokens()),
      worker,
      chain,
      promptTokens,
      load,
      price: this.#scope.prices.get(model),
    };
  }

  #outside(model: string): ProviderCandidate[] {
    const serving = this.#providers().filter((provider) => provider.models.has(model));
    if (serving.length === 0) return [];
    const promptTokens = this.promptTokens(model);
    return serving.map((provider) => {
      const state = this.#fleet.stateOf(provider);
      const ttftMs = state.expectedTtftMs(model, provider.expectedTtftMs(model));
      return {
        model,
        type: "Provider",
        name: provider.name,
        labels: provider.labels,
        errorRate: state.errors.rate(this.#nowMs),
        healthy: state.healthy(this.#nowMs),
        queuedPrompts: undefined,
        runningPrompts: undefined,
        kvCacheUsage: undefined,
        predictedTtftMs: ttftMs,
        predictedE2eMs: ttftMs,
        harmMs: 0,
        cachedTokens: 0,
        cost: costOf(provider.priceOf(model), promptTokens, 0, this.#outputTokens()),
        provider,
        promptTokens,
      };
    });
  }

  #outputTokens(): number {
    return Math.min(this.#request.maxTokens ?? EXPECTED_OUTPUT_TOKENS, EXPECTED_OUTPUT_TOKENS);
  }
}

/** A sum of which one part is unknown is unknown. */
function sum(values: readonly (number | undefined)[]): number | undefined {
  let total = 0;
  for (const value of values) {
    if (value === undefined) return undefined;
    total += value;
  }
  return total;
}

function mean(values: readonly (number | undefined)[]): number | undefined {
  const total = sum(values);
  return total === undefined ? undefined : total / values.length;
}

/** Subset entries are `ip:port`, or `ip` for every port of a host. */
function inSubset(address: string, subset: readonly string[] | undefined): boolean {
  if (subset === undefined) return true;
  const host = address.slice(0, address.lastIndexOf(":"));
  return subset.includes(address) || subset.includes(host);
}
