import { BlockIndex } from "./block-index.ts";
import { CHARS_PER_LINK, type PromptChain, TOKENS_PER_LINK } from "./prompt-chain.ts";

/** Assumed until the worker's metrics tell: small, so that nothing is promised that may not be there. */
const DEFAULT_CAPACITY_TOKENS = 32_768;
const DEFAULT_BLOCK_TOKENS = 16;

export interface CacheMatch {
  /** Prompt tokens that the worker is expected to reuse, a whole number of its blocks. */
  cachedTokens: number;
  /** Estimate of all prompt tokens. */
  promptTokens: number;
}

/** A prompt that is on a worker: what was pinned for it, to be let go at its end. */
export interface CacheLease {
  /** The index it was taken from: a restarted worker has another, on which the lease means nothing. */
  readonly index: BlockIndex;
  readonly chain: PromptChain;
  readonly pinnedLinks: number;
  /** Links that were there already; those after them are this request's own. */
  readonly knownLinks: number;
  /** When the last of the known links had been freed, in the index's time; 0 if it was in use. */
  readonly knownSince: number;
}

/** One worker's KV cache, as far as it can be told from outside. All models and adapters of the worker share it. */
export class WorkerCache {
  #capacityTokens = DEFAULT_CAPACITY_TOKENS;
  #blockTokens = DEFAULT_BLOCK_TOKENS;
  #index = new BlockIndex(DEFAULT_CAPACITY_TOKENS);

  get usedTokens(): number {
    return this.#index.usedTokens;
  }

  get capacityTokens(): number {
    return this.#capacityTokens;
  }

  /** Sets the true size, from `vllm:cache_config_info`. */
  configure(capacityTokens: number, blockTokens: number): void {
    if (capacityTokens === this.#capacityTokens && blockTokens === this.#blockTokens) return;
    this.#capacityTokens = capacityTokens;
    this.#blockTokens = blockTokens;
    this.#index.setCapacity(capacityTokens);
  }

  /** Forgets everything: the worker's process is a new one. */
  clear(): void {
    this.#index = new BlockIndex(this.#capacityTokens);
  }

  /** How much of a prompt the worker holds: the contiguous links from its start, and an answer given there. */
  match(chain: PromptChain, charactersPerToken: number): CacheMatch {
    const index = this.#index;
    const { links, linkCount, ends } = chain;
    let linkTokens = 0;
    let answerTokens = 0;
    let link = 0;
    for (let end = 0; ; link++) {
      for (let at = ends[end]; at?.linkCount === link; at = ends[++end]) {
        const slot = index.find(at.high, at.low);
        if (slot >= 0) answerTokens = linkTokens + index.tokensAt(slot);
      }
      const slot = link < linkCount ? index.find(links[2 * link] ?? 0, links[2 * link + 1] ?? 0) : -1;
      if (slot < 0) break;
      linkTokens += index.tokensAt(slot);
    }
    const unmatched = chain.characters - link * (chain.exactTokens ? TOKENS_PER_LINK : CHARS_PER_LINK);
    const rest =
      (chain.exactTokens ? unmatched : unmatched / charactersPerToken) + (link === 0 ? chain.imageTokens : 0);
    const promptTokens = Math.max(1, Math.round(linkTokens + rest));
    return {
      cachedTokens: this.#wholeBlocks(Math.min(Math.max(linkTokens, answerTokens), promptTokens - 1)),
      promptTokens,
    };
  }

  /** Records that a prompt is being sent to the worker; its links stay until `release`. */
  acquire(chain: PromptChain, promptTokens: number): CacheLease {
    const { links, linkCount } = chain;
    let knownLinks = 0;
    while (knownLinks < linkCount && this.#index.find(links[2 * knownLinks] ?? 0, links[2 * knownLinks + 1] ?? 0) >= 0)
      knownLinks++;
    const tail = knownLinks - 1;
    const knownSince =
      tail < 0 ? 0 : this.#index.freedAt(this.#index.find(links[2 * tail] ?? 0, links[2 * tail + 1] ?? 0));
    const tokensPerLink = this.#tokensPerLink(chain, promptTokens, knownLinks);
    let pinnedLinks = 0;
    while (
      pinnedLinks < linkCount &&
      this.#index.pin(links[2 * pinnedLinks] ?? 0, links[2 * pinnedLinks + 1] ?? 0, tokensPerLink)
    )
      pinnedLinks++;
    return { index: this.#index, chain, pinnedLinks, knownLinks, knownSince };
  }

  /**
   * Ends a request. The tail is freed first, so that it is also evicted first, as vLLM does. `outputTokens` become
   * part of what the worker holds; `promptTokens`, if reported, corrects the links that this request added.
   */
  release(lease: CacheLease, outcome: { reached: boolean; promptTokens?: number; outputTokens?: number }): void {
    if (lease.index !== this.#index) return;
    this.#index.tick();
    const { chain } = lease;
    const last = chain.ends.at(-1);
    if (outcome.reached && last !== undefined && lease.pinnedLinks === chain.linkCount) {
      const tail =
        chain.tailLength /
        (chain.exactTokens ? 1 : chain.characters / Math.max(1, outcome.promptTokens ?? chain.characters / 4));
      // The last generated token is never computed, so it is not in the cache.
      const tokens = tail + Math.max(0, (outcome.outputTokens ?? 1) - 1);
      if (tokens >= 1 && this.#index.pin(last.high, last.low, tokens)) {
        this.#index.setTokens(this.#index.find(last.high, last.low), tokens);
        this.#index.unpin(last.high, last.low);
      }
    }
    const corrected =
      outcome.promptTokens === undefined
        ? undefined
        : this.#tokensPerLink(chain, outcome.promptTokens, lease.knownLinks);
    for (let link = lease.pinnedLinks - 1; link >= 0; link--) {
      const high = chain.links[2 * link] ?? 0;
      const low = chain.links[2 * link + 1] ?? 0;
      if (corrected !== undefined && link >= lease.knownLinks)
        this.#index.setTokens(this.#index.find(high, low), corrected);
      this.#index.unpin(high, low);
      if (!outcome.reached && link >= lease.knownLinks) this.#index.removeIfUnpinned(high, low);
    }
  }

  /**
   * Compares a prediction with what the worker reported. Eviction goes by age: if the tail of this prompt was gone, so is
   * everything that was freed before it.
   */
  correct(lease: CacheLease, predictedTokens: number, reportedTokens: number): void {
    const missing = predictedTokens - reportedTokens;
    if (lease.index === this.#index && missing > 2 * this.#blockTokens) this.#index.evictFreedBefore(lease.knownSince);
  }

  /** Tokens per link of the part that is new, given the prompt's total and what the known links stand for. */
  #tokensPerLink(chain: PromptChain, promptTokens: number, knownLinks: number): number {
    if (chain.exactTokens) return TOKENS_PER_LINK;
    let knownTokens = 0;
    for (let link = 0; link < knownLinks; link++) {
      const slot = this.#index.find(chain.links[2 * link] ?? 0, chain.links[2 * link + 1] ?? 0);
      if (slot >= 0) knownTokens += this.#index.tokensAt(slot);
    }
    const characters = chain.characters - knownLinks * CHARS_PER_LINK;
    if (characters <= 0) return CHARS_PER_LINK / 4;
    const share = Math.max(0, promptTokens - knownTokens) / characters;
    return Math.min(CHARS_PER_LINK * 4, Math.max(1, share * CHARS_PER_LINK));
  }

  #wholeBlocks(tokens: number): number {
    return Math.max(0, Math.floor(tokens / this.#blockTokens) * this.#blockTokens);
  }
}
