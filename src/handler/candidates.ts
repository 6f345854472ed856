import { buildPromptChain, type PromptChain } from "../kvcache/prompt-chain.ts";
import type { PrefillLoad } from "../latency/latency-model.ts";
import type { Candidate } from "../policy/facts.ts";
import type { InferenceRequest } from "../protocols/protocol.ts";
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
}

const EXPECTED_OUTPUT_TOKENS = 300;
/** What a second copy of a whole prompt costs at least: small differences must not scatter conversations. */
const COPY_COST_MS = 60;
/** How likely it is that what a new prompt evicts would have been used again. */
const REUSE_PROBABILITY = 0.25;

/** Finds the candidates of one request. Each model is looked at once, however many rules ask. */
export class CandidateFinder {
  readonly #fleet: Fleet;
  readonly #scope: Scope;
  readonly #request: InferenceRequest;
  readonly #nowMs: number;
  readonly #rotation: number;
  readonly #chains = new Map<string, PromptChain>();
  readonly #found = new Map<string, BackendCandidate[]>();

  /** @param rotation changes with each request, so that equal workers take turns */
  constructor(fleet: Fleet, scope: Scope, request: InferenceRequest, nowMs: number, rotation: number) {
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

  #local(model: string): LocalCandidate[] {
    const { pools, subset } = this.#scope;
    const workers = [...this.#fleet.workers.all()].filter(
      (worker) =>
        worker.models.has(model) && (pools === undefined || pools.has(worker.pool)) && inSubset(worker.address, subset),
    );
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
      healthy: worker.healthy,
      queuedPrompts: worker.queuedPrompts(this.#nowMs),
      runningPrompts: worker.runningPrompts(this.#nowMs),
      kvCacheUsage: worker.kvCacheUsage(this.#nowMs),
      predictedTtftMs: ttftMs,
      predictedE2eMs: e2eMs,
      harmMs: harmMs + REUSE_PROBABILITY * Math.min(evictedTokens, uncachedTokens) * msPerToken,
      cachedTokens,
      cost: 0,
      worker,
      chain,
      promptTokens,
      load,
    };
  }

  #outside(model: string): ProviderCandidate[] {
    const serving = this.#scope.providers.filter((provider) => provider.models.has(model));
    if (serving.length === 0) return [];
    const promptTokens = this.promptTokens(model);
    const outputTokens = this.#request.maxTokens ?? EXPECTED_OUTPUT_TOKENS;
    return serving.map((provider) => ({
      model,
      type: "Provider",
      name: provider.name,
      healthy: true,
      queuedPrompts: undefined,
      runningPrompts: undefined,
      kvCacheUsage: undefined,
      predictedTtftMs: provider.expectedTtftMs(model),
      predictedE2eMs: provider.expectedTtftMs(model),
      harmMs: 0,
      cachedTokens: 0,
      cost: provider.cost(model, promptTokens, outputTokens),
      provider,
      promptTokens,
    }));
  }
}

/** Subset entries are `ip:port`, or `ip` for every port of a host. */
function inSubset(address: string, subset: readonly string[] | undefined): boolean {
  if (subset === undefined) return true;
  const host = address.slice(0, address.lastIndexOf(":"));
  return subset.includes(address) || subset.includes(host);
}
