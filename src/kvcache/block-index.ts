const NONE = -1;
/** Weights are kept in 1/16 token, so that a link of a text may be 14.3 tokens. */
const WEIGHT_SCALE = 16;
const MAX_WEIGHT = 0xffff;

/**
 * Which chain links one worker's KV cache holds, in vLLM's order of reuse: links in use are pinned, free ones wait in
 * one queue and the one that was freed longest ago is evicted first. Typed arrays: 32 bytes a link, nothing allocated
 * per operation. Owned by the worker's `WorkerCache`, for as long as the worker's process lives.
 */
export class BlockIndex {
  #capacity: number;
  #used = 0;
  #count = 0;
  #high: Uint32Array;
  #low: Uint32Array;
  #weight: Uint16Array;
  #pins: Uint16Array;
  #next: Int32Array;
  #previous: Int32Array;
  /** The time, in `tick`s, at which a link was last put into the queue. */
  #freedAt: Uint32Array;
  #time = 1;
  /** Open addressing with linear probing: slot + 1, or 0 for empty. At most half full. */
  #table: Int32Array;
  #freeSlot = NONE;
  /** The queue of unpinned links, least recently freed first. */
  #oldest = NONE;
  #newest = NONE;

  /** `capacityTokens`: the worker's KV cache size in tokens. */
  constructor(capacityTokens: number, initialLinks = 1024) {
    this.#capacity = capacityTokens * WEIGHT_SCALE;
    this.#high = new Uint32Array(initialLinks);
    this.#low = new Uint32Array(initialLinks);
    this.#weight = new Uint16Array(initialLinks);
    this.#pins = new Uint16Array(initialLinks);
    this.#next = new Int32Array(initialLinks);
    this.#previous = new Int32Array(initialLinks);
    this.#freedAt = new Uint32Array(initialLinks);
    this.#table = new Int32Array(2 * initialLinks);
    this.#chainFreeSlots(0);
  }

  get linkCount(): number {
    return this.#count;
  }

  get usedTokens(): number {
    return this.#used / WEIGHT_SCALE;
  }

  /** Changes the capacity, evicting what no longer fits. */
  setCapacity(tokens: number): void {
    this.#capacity = tokens * WEIGHT_SCALE;
    this.#makeRoom(0);
  }

  /** The slot of a link, or -1. A slot is valid until the link is evicted. */
  find(high: number, low: number): number {
    const table = this.#table;
    const mask = table.length - 1;
    for (let at = low & mask; ; at = (at + 1) & mask) {
      const entry = table[at] ?? 0;
      if (entry === 0) return NONE;
      const slot = entry - 1;
      if (this.#low[slot] === low && this.#high[slot] === high) return slot;
    }
  }

  tokensAt(slot: number): number {
    return (this.#weight[slot] ?? 0) / WEIGHT_SCALE;
  }

  /** Corrects how many tokens a pinned link stands for; what no longer fits beside it is evicted. */
  setTokens(slot: number, tokens: number): void {
    const weight = toWeight(tokens);
    this.#used += weight - (this.#weight[slot] ?? 0);
    this.#weight[slot] = weight;
    this.#makeRoom(0);
  }

  /** Lets time pass: what is freed from now on is younger than what was freed before. */
  tick(): void {
    this.#time++;
  }

  /** When a link was last freed; 0 if it is in use. */
  freedAt(slot: number): number {
    return this.#pins[slot] === 0 ? (this.#freedAt[slot] ?? 0) : 0;
  }

  /** Evicts every free link that was freed before a time. */
  evictFreedBefore(time: number): void {
    while (this.#oldest !== NONE && (this.#freedAt[this.#oldest] ?? 0) < time) this.#evictOldest();
  }

  /** Holds a link against eviction; adds it if it is not there. False if it does not fit beside what is pinned. */
  pin(high: number, low: number, tokens: number): boolean {
    const found = this.find(high, low);
    if (found !== NONE) {
      if (this.#pins[found] === 0) this.#unqueue(found);
      this.#pins[found] = Math.min(0xffff, (this.#pins[found] ?? 0) + 1);
      return true;
    }
    const weight = toWeight(tokens);
    if (!this.#makeRoom(weight)) return false;
    const slot = this.#insert(high, low, weight);
    this.#pins[slot] = 1;
    return true;
  }

  /** Lets go of a pinned link: the last to do so puts it at the end of the queue. */
  unpin(high: number, low: number): void {
    const slot = this.find(high, low);
    const pins = slot === NONE ? 0 : (this.#pins[slot] ?? 0);
    if (pins === 0) return;
    this.#pins[slot] = pins - 1;
    if (pins > 1) return;
    this.#enqueue(slot);
    // A link that grew while all others were pinned may have gone beyond the capacity.
    this.#makeRoom(0);
  }

  /** Removes a link that nobody holds, as if it had never been there. */
  removeIfUnpinned(high: number, low: number): void {
    const slot = this.find(high, low);
    if (slot === NONE || this.#pins[slot] !== 0) return;
    this.#unqueue(slot);
    this.#remove(slot);
  }

  #makeRoom(weight: number): boolean {
    while (this.#used + weight > this.#capacity) {
      if (this.#oldest === NONE) return false;
      this.#evictOldest();
    }
    return true;
  }

  #evictOldest(): void {
    const victim = this.#oldest;
    this.#unqueue(victim);
    this.#remove(victim);
  }

  #insert(high: number, low: number, weight: number): number {
    if (this.#freeSlot === NONE) this.#grow();
    const slot = this.#freeSlot;
    this.#freeSlot = this.#next[slot] ?? NONE;
    this.#high[slot] = high;
    this.#low[slot] = low;
    this.#weight[slot] = weight;
    this.#used += weight;
    this.#count++;
    this.#place(slot);
    return slot;
  }

  #place(slot: number): void {
    const mask = this.#table.length - 1;
    let at = (this.#low[slot] ?? 0) & mask;
    while (this.#table[at] !== 0) at = (at + 1) & mask;
    this.#table[at] = slot + 1;
  }

  #remove(slot: number): void {
    const table = this.#table;
    const mask = table.length - 1;
    let hole = (this.#low[slot] ?? 0) & mask;
    while (table[hole] !== slot + 1) hole = (hole + 1) & mask;
    // Close the gap: an entry moves back unless its home lies cyclically between the hole and itself.
    for (let at = (hole + 1) & mask; table[at] !== 0; at = (at + 1) & mask) {
      const home = (this.#low[(table[at] ?? 0) - 1] ?? 0) & mask;
      if (((at - home) & mask) < ((at - hole) & mask)) continue;
      table[hole] = table[at] ?? 0;
      hole = at;
    }
    table[hole] = 0;
    this.#used -= this.#weight[slot] ?? 0;
    this.#count--;
    this.#next[slot] = this.#freeSlot;
    this.#freeSlot = slot;
  }

  #enqueue(slot: number): void {
    this.#freedAt[slot] = this.#time;
    this.#previous[slot] = this.#newest;
    this.#next[slot] = NONE;
    if (this.#newest === NONE) this.#oldest = slot;
    else this.#next[this.#newest] = slot;
    this.#newest = slot;
  }

  #unqueue(slot: number): void {
    const previous = this.#previous[slot] ?? NONE;
    const next = this.#next[slot] ?? NONE;
    if (previous === NONE) this.#oldest = next;
    else this.#next[previous] = next;
    if (next === NONE) this.#newest = previous;
    else this.#previous[next] = previous;
  }

  #chainFreeSlots(from: number): void {
    const end = this.#next.length;
    for (let slot = from; slot < end; slot++) this.#next[slot] = slot + 1 < end ? slot + 1 : NONE;
    this.#freeSlot = from;
  }

  #grow(): void {
    const size = this.#high.length * 2;
    const from = this.#high.length;
    this.#high = copyInto(new Uint32Array(size), this.#high);
    this.#low = copyInto(new Uint32Array(size), this.#low);
    this.#weight = copyInto(new Uint16Array(size), this.#weight);
    this.#pins = copyInto(new Uint16Array(size), this.#pins);
    this.#next = copyInto(new Int32Array(size), this.#next);
    this.#previous = copyInto(new Int32Array(size), this.#previous);
    this.#freedAt = copyInto(new Uint32Array(size), this.#freedAt);
    this.#table = new Int32Array(2 * size);
    for (let slot = 0; slot < from; slot++) this.#place(slot);
    this.#chainFreeSlots(from);
  }
}

function toWeight(tokens: number): number {
  return Math.max(1, Math.min(MAX_WEIGHT, Math.round(tokens * WEIGHT_SCALE)));
}

function copyInto<T extends Uint32Array | Uint16Array | Int32Array>(target: T, source: T): T {
  target.set(source);
  return target;
}
