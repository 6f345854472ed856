/** A block of the paged KV cache. */
export interface Block {
  readonly id: number;
  /** Chain hash of the tokens up to its end, once it is full. */
  hash: string | undefined;
  references: number;
  previous: Block | undefined;
  next: Block | undefined;
}

/**
 * vLLM's block pool (v1 `BlockPool` and `FreeKVCacheBlockQueue`): blocks nobody refers to wait in one queue with what
 * they hold; new allocations take from its front, a hit takes a block out of it, freed blocks join its end.
 */
export class BlockPool {
  /** Hashes of blocks, each with the blocks that hold it: two requests may have computed the same at once. */
  readonly #cached = new Map<string, Set<Block>>();
  readonly #size: number;
  #first: Block | undefined;
  #last: Block | undefined;
  #freeCount = 0;

  constructor(blocks: number) {
    // Block 0 is vLLM's null block and never holds anything.
    this.#size = blocks - 1;
    for (let id = 1; id < blocks; id++)
      this.#append({ id, hash: undefined, references: 0, previous: undefined, next: undefined });
  }

  get freeCount(): number {
    return this.#freeCount;
  }

  /** Share of blocks in use, 0 to 1. */
  get usage(): number {
    return this.#size === 0 ? 0 : 1 - this.#freeCount / this.#size;
  }

  find(hash: string): Block | undefined {
    return this.#cached.get(hash)?.values().next().value;
  }

  /** Takes part in a cached block. */
  touch(block: Block): void {
    if (block.references === 0) this.#unlink(block);
    block.references++;
  }

  /** Takes free blocks, forgetting what they held. The caller has checked that there are enough. */
  allocate(count: number): Block[] {
    const taken: Block[] = [];
    for (let i = 0; i < count; i++) {
      const block = this.#first;
      if (block === undefined) throw new Error("allocate() without free blocks");
      this.#unlink(block);
      this.#forget(block);
      block.references = 1;
      taken.push(block);
    }
    return taken;
  }

  /** Makes a full block findable. */
  cache(block: Block, hash: string): void {
    block.hash = hash;
    const holders = this.#cached.get(hash);
    if (holders === undefined) this.#cached.set(hash, new Set([block]));
    else holders.add(block);
  }

  /**
   * Gives blocks back in the order given: vLLM gives a request's last block first. A block that was never full can be
   * of no use to anybody, so it goes to the front of the queue and is taken first (vLLM 0.32).
   */
  free(blocks: Iterable<Block>): void {
    for (const block of blocks) {
      block.references--;
      if (block.references > 0) continue;
      if (block.hash === undefined) this.#prepend(block);
      else this.#append(block);
    }
  }

  #forget(block: Block): void {
    if (block.hash === undefined) return;
    const holders = this.#cached.get(block.hash);
    holders?.delete(block);
    if (holders?.size === 0) this.#cached.delete(block.hash);
    block.hash = undefined;
  }

  #append(block: Block): void {
    block.previous = this.#last;
    block.next = undefined;
    if (this.#last === undefined) this.#first = block;
    else this.#last.next = block;
    this.#last = block;
    this.#freeCount++;
  }

  #prepend(block: Block): void {
    block.previous = undefined;
    block.next = this.#first;
    if (this.#first === undefined) this.#last = block;
    else this.#first.previous = block;
    this.#first = block;
    this.#freeCount++;
  }

  #unlink(block: Block): void {
    if (block.previous === undefined) this.#first = block.next;
    else block.previous.next = block.next;
    if (block.next === undefined) this.#last = block.previous;
    else block.next.previous = block.previous;
    this.#freeCount--;
  }
}
