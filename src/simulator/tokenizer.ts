/** The simulator's vocabulary for answers: each word with its space is one token. */
const WORDS =
  "the of and to in is it for on as with at by from or an be this that are was we can has more will its one all so if out up time no way who may new now any how our use own two see day get over such make than then them only come work take year".split(
    " ",
  );

/** Cuts text into pseudo-tokens: short words with their space, longer ones in pieces of five letters, digits in threes. */
export function tokenize(text: string): number[] {
  return (text.match(/ ?\p{L}{1,5}| ?\p{N}{1,3}|\s|[^\s\p{L}\p{N}]/gu) ?? []).map(tokenId);
}

/** FNV-1a: the same piece is the same token everywhere. */
function tokenId(piece: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < piece.length; i++) hash = Math.imul(hash ^ piece.charCodeAt(i), 0x01000193);
  return hash >>> 1;
}

/** A word of an answer, deterministic in `random` (32 bits), with its token. */
export function wordFor(random: number): { text: string; token: number } {
  const text = ` ${WORDS[random % WORDS.length] ?? "the"}`;
  return { text, token: tokenId(text) };
}

/** SplitMix32: a well-mixed number from a seed and a position. */
export function mix(seed: number, position: number): number {
  let z = (seed + Math.imul(position + 1, 0x9e3779b9)) | 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return (z ^ (z >>> 15)) >>> 0;
}
