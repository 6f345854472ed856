/** Characters (UTF-16 code units) per link of a text chain: about one 16-token KV block of English. */
export const CHARS_PER_LINK = 64;
/** Token ids per link of a chain over token ids. */
export const TOKENS_PER_LINK = 16;
/** What an image stands for until a worker has reported the true number. */
const TOKENS_PER_IMAGE = 576;
/** Characters of an image's data that go into its identity: megabytes would hold up every other request. */
const IMAGE_SAMPLES = 4096;

/** What the chain is made of: prompt parts in rendered order. */
export interface ChainInput {
  segments: readonly { role: string; text: string; image?: boolean }[];
  promptTokenIds?: readonly number[];
  /** Requests with different seeds (model, LoRA adapter, cache salt) share nothing. */
  seed: string;
}

/**
 * A prompt as a chain of hashes, each over everything before it: two prompts agree on link i if and only if they agree
 * on all text up to it, as KV blocks do. `ends` are the places where an answer may have been appended by a worker.
 */
export interface PromptChain {
  /** Two 32-bit halves for each link. */
  readonly links: Uint32Array;
  readonly linkCount: number;
  readonly ends: readonly ChainEnd[];
  /** Characters (or token ids) after the last whole link. */
  readonly tailLength: number;
  readonly characters: number;
  /** Links are token ids, so that their number of tokens is known. */
  readonly exactTokens: boolean;
  /** Tokens that characters do not account for. */
  readonly imageTokens: number;
}

/** The end of a message after which an assistant's answer follows, or of the whole prompt. */
export interface ChainEnd {
  readonly high: number;
  readonly low: number;
  /** Whole links before it. */
  readonly linkCount: number;
  /** Characters between the last whole link and the end. */
  readonly tailLength: number;
}

/** Hashes a prompt in one pass, about 1 ns a character, without allocating per link. */
export function buildPromptChain(input: ChainInput): PromptChain {
  const characters =
    input.promptTokenIds?.length ?? input.segments.reduce((sum, s) => sum + s.text.length + s.role.length + 2, 0);
  const perLink = input.promptTokenIds ? TOKENS_PER_LINK : CHARS_PER_LINK;
  const hasher = new ChainHasher(input.seed, perLink, Math.floor(characters / perLink) + 1);
  const ends: ChainEnd[] = [];
  let images = 0;
  if (input.promptTokenIds) hasher.addIds(input.promptTokenIds);
  let previousRole = "";
  for (const segment of input.segments) {
    if (segment.role !== previousRole) {
      if (segment.role === "assistant") ends.push(hasher.end());
      hasher.addText(`\u0001${segment.role}\u0002`);
      previousRole = segment.role;
    }
    if (segment.image) {
      images++;
      hasher.addSampled(segment.text);
    } else hasher.addText(segment.text);
  }
  ends.push(hasher.end());
  return {
    links: hasher.links,
    linkCount: hasher.linkCount,
    ends,
    tailLength: hasher.tailLength,
    characters: hasher.length,
    exactTokens: input.promptTokenIds !== undefined,
    imageTokens: images * TOKENS_PER_IMAGE,
  };
}

/** Two multiplicative 32-bit lanes with a final mix at each link: 64 bits against accidental collisions. */
class ChainHasher {
  readonly links: Uint32Array;
  linkCount = 0;
  tailLength = 0;
  length = 0;
  readonly #perLink: number;
  #a = 0x9e3779b9;
  #b = 0x85ebca6b;

  constructor(seed: string, perLink: number, maxLinks: number) {
    this.links = new Uint32Array(2 * maxLinks);
    this.#perLink = perLink;
    for (let i = 0; i < seed.length; i++) this.#mix(seed.charCodeAt(i));
  }

  addText(text: string): void {
    for (let i = 0; i < text.length; i++) this.#add(text.charCodeAt(i));
  }

  /** Of something long and random only its length and every few hundredth character: enough to tell images apart. */
  addSampled(text: string): void {
    this.addText(String(text.length));
    const step = Math.max(1, Math.floor(text.length / IMAGE_SAMPLES));
    for (let i = 0; i < text.length; i += step) this.#add(text.charCodeAt(i));
  }

  addIds(ids: readonly number[]): void {
    for (const id of ids) this.#add(id);
  }

  end(): ChainEnd {
    // Distinct from any link at the same place: an end says something else about the cache.
    return {
      high: finalize(this.#a ^ 0x27d4eb2f ^ this.tailLength),
      low: finalize(this.#b ^ 0x165667b1),
      linkCount: this.linkCount,
      tailLength: this.tailLength,
    };
  }

  #add(unit: number): void {
    this.#mix(unit);
    this.length++;
    if (++this.tailLength < this.#perLink) return;
    this.links[2 * this.linkCount] = finalize(this.#a);
    this.links[2 * this.linkCount + 1] = finalize(this.#b);
    this.linkCount++;
    this.tailLength = 0;
  }

  #mix(unit: number): void {
    this.#a = Math.imul(this.#a ^ unit, 0x01000193);
    this.#b = Math.imul(this.#b ^ unit ^ (this.#b >>> 15), 0x5bd1e995);
  }
}

/** The finalizer of MurmurHash3 (public domain, Austin Appleby). */
function finalize(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
