import { createHash } from "node:crypto";
import { type Block, BlockPool } from "./block-pool.ts";

export interface EngineSettings {
  blocks: number;
  blockTokens: number;
  /** vLLM's `max_num_seqs`. */
  maxRunning: number;
  /** vLLM's `max_num_batched_tokens`: prefill is cut into chunks of what is left of it. */
  stepTokenBudget: number;
}

/** One sequence in the engine. */
export class Sequence {
  readonly id: number;
  readonly tokens: number[];
  readonly promptTokens: number;
  readonly maxTokens: number;
  readonly salt: string;
  computed = 0;
  /** Prompt tokens found in the cache when it was first scheduled. */
  cachedTokens = -1;
  blocks: Block[] = [];
  readonly hashes: string[] = [];

  constructor(id: number, prompt: readonly number[], maxTokens: number, salt: string) {
    this.id = id;
    this.tokens = [...prompt];
    this.promptTokens = prompt.length;
    this.maxTokens = maxTokens;
    this.salt = salt;
  }

  get generated(): number {
    return this.tokens.length - this.promptTokens;
  }
}

/** What one step did. */
export interface StepResult {
  prefillTokens: number;
  decodes: number;
  /** Sequences that got a token. */
  sampled: Sequence[];
  finished: Sequence[];
}

export interface EngineCounters {
  promptTokens: number;
  generatedTokens: number;
  prefixQueries: number;
  prefixHits: number;
  preemptions: number;
  finished: number;
}

/**
 * vLLM v1's scheduler and KV cache, without the model: running sequences first, then waiting ones while the token
 * budget, the sequence limit and the blocks last; when blocks run out, the youngest is preempted and starts again.
 * Pure: `step` is one engine step, and time belongs to the caller.
 */
export class Engine {
  readonly settings: EngineSettings;
  readonly counters: EngineCounters = {
    promptTokens: 0,
    generatedTokens: 0,
    prefixQueries: 0,
    prefixHits: 0,
    preemptions: 0,
    finished: 0,
  };
  readonly #pool: BlockPool;
  readonly #sample: (sequence: Sequence) => number;
  #waiting: Sequence[] = [];
  #running: Sequence[] = [];

  /** @param sample gives a sequence's next token */
  constructor(settings: EngineSettings, sample: (sequence: Sequence) => number) {
    this.settings = settings;
    this.#pool = new BlockPool(settings.blocks);
    this.#sample = sample;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get running(): number {
    return this.#running.length;
  }

  get kvCacheUsage(): number {
    return this.#pool.usage;
  }

  get idle(): boolean {
    return this.#waiting.length === 0 && this.#running.length === 0;
  }

  /** The longest sequence that can ever run. */
  get capacityTokens(): number {
    return (this.settings.blocks - 1) * this.settings.blockTokens;
  }

  add(sequence: Sequence): void {
    this.#waiting.push(sequence);
  }

  /** The client left: its blocks are free at once, with what they hold. */
  abort(sequence: Sequence): void {
    this.#waiting = this.#waiting.filter((other) => other !== sequence);
    if (!this.#running.includes(sequence)) return;
    this.#running = this.#running.filter((other) => other !== sequence);
    this.#free(sequence);
  }

  step(): StepResult {
    const scheduled = new Map<Sequence, number>();
    const preempted = this.#scheduleRunning(scheduled);
    if (!preempted) this.#scheduleWaiting(scheduled);
    return this.#execute(scheduled);
  }

  #budget(scheduled: Map<Sequence, number>): number {
    let used = 0;
    for (const tokens of scheduled.values()) used += tokens;
    return this.settings.stepTokenBudget - used;
  }

  #scheduleRunning(scheduled: Map<Sequence, number>): boolean {
    let preempted = false;
    for (let i = 0; i < this.#running.length; i++) {
      const sequence = this.#running[i];
      const count =
        sequence === undefined ? 0 : Math.min(sequence.tokens.length - sequence.computed, this.#budget(scheduled));
      if (sequence === undefined || count <= 0) continue;
      while (!this.#allocate(sequence, count)) {
        const youngest = this.#running.pop();
        if (youngest === undefined) break;
        this.#preempt(youngest, scheduled);
        preempted = true;
        if (youngest === sequence) break;
      }
      if (this.#running.includes(sequence)) scheduled.set(sequence, count);
    }
    return preempted;
  }

  #scheduleWaiting(scheduled: Map<Sequence, number>): void {
    while (this.#running.length < this.settings.maxRunning && this.#budget(scheduled) > 0) {
      const sequence = this.#waiting[0];
      if (sequence === undefined) return;
      const hits = this.#cachedBlocks(sequence);
      const cached = hits.length * this.settings.blockTokens;
      const count = Math.min(sequence.tokens.length - cached, this.#budget(scheduled));
      if (!this.#admit(sequence, hits, count)) return;
      this.#waiting.shift();
      this.#running.push(sequence);
      scheduled.set(sequence, count);
    }
  }

  /** Gives a waiting sequence its cached blocks and room for its first chunk, or nothing. */
  #admit(sequence: Sequence, hits: Block[], count: number): boolean {
    const { blockTokens } = this.settings;
    const cached = hits.length * blockTokens;
    const fresh = Math.ceil((cached + count) / blockTokens) - hits.length;
    const idleHits = hits.filter((block) => block.references === 0).length;
    if (fresh > this.#pool.freeCount - idleHits) return false;
    for (const block of hits) this.#pool.touch(block);
    sequence.blocks = [...hits];
    sequence.computed = cached;
    if (sequence.cachedTokens < 0) {
      sequence.cachedTokens = cached;
      this.counters.prefixQueries += sequence.tokens.length;
      this.counters.prefixHits += cached;
    }
    this.#allocate(sequence, count);
    return true;
  }

  /** Room for `count` more tokens; full blocks become findable at once, as vLLM's do. */
  #allocate(sequence: Sequence, count: number): boolean {
    const end = sequence.computed + count;
    const missing = Math.ceil(end / this.settings.blockTokens) - sequence.blocks.length;
    if (missing > this.#pool.freeCount) return false;
    if (missing > 0) sequence.blocks.push(...this.#pool.allocate(missing));
    const full = Math.floor(Math.min(end, sequence.tokens.length) / this.settings.blockTokens);
    for (let i = 0; i < full; i++) {
      const block = sequence.blocks[i];
      if (block !== undefined && block.hash === undefined) this.#pool.cache(block, this.#hash(sequence, i));
    }
    return true;
  }

  /** The cached blocks of a prompt from its start; the last token is always computed, for its logits. */
  #cachedBlocks(sequence: Sequence): Block[] {
    const most = Math.floor((sequence.tokens.length - 1) / this.settings.blockTokens);
    const hits: Block[] = [];
    for (let i = 0; i < most; i++) {
      const block = this.#pool.find(this.#hash(sequence, i));
      if (block === undefined) break;
      hits.push(block);
    }
    return hits;
  }

  #hash(sequence: Sequence, index: number): string {
    const { blockTokens } = this.settings;
    for (let i = sequence.hashes.length; i <= index; i++) {
      const tokens = sequence.tokens.slice(i * blockTokens, (i + 1) * blockTokens);
      const parent = sequence.hashes[i - 1] ?? sequence.salt;
      sequence.hashes.push(
        createHash("sha256")
          .update(`${parent}|${tokens.join(",")}`)
          .digest("base64"),
      );
    }
    return sequence.hashes[index] ?? "";
  }

  #preempt(sequence: Sequence, scheduled: Map<Sequence, number>): void {
    scheduled.delete(sequence);
    this.#free(sequence);
    sequence.computed = 0;
    this.counters.preemptions++;
    this.#waiting.unshift(sequence);
  }

  #free(sequence: Sequence): void {
    this.#pool.free(sequence.blocks.toReversed());
    sequence.blocks = [];
  }

  #execute(scheduled: Map<Sequence, number>): StepResult {
    const result: StepResult = { prefillTokens: 0, decodes: 0, sampled: [], finished: [] };
    for (const [sequence, count] of scheduled) {
      if (sequence.generated > 0 && count === 1) result.decodes++;
      else result.prefillTokens += count;
      sequence.computed += count;
      if (sequence.computed < sequence.tokens.length) continue;
      if (sequence.generated === 0) this.counters.promptTokens += sequence.promptTokens;
      sequence.tokens.push(this.#sample(sequence));
      this.counters.generatedTokens++;
      result.sampled.push(sequence);
      if (sequence.generated >= sequence.maxTokens) result.finished.push(sequence);
    }
    for (const sequence of result.finished) {
      this.#running = this.#running.filter((other) => other !== sequence);
      this.#free(sequence);
      this.counters.finished++;
    }
    return result;
  }
}
