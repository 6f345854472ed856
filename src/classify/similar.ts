// Few-shot similarity without a model: words and character trigrams hashed into a sparse vector, compared by cosine.

const BUCKETS = 1 << 18;
/** Of a long text its beginning and its end are looked at. */
const MAX_CHARACTERS = 4000;
/** How many of the closest examples count. */
const NEIGHBOURS = 3;

type Vector = ReadonlyMap<number, number>;

/**
 * Compiles examples to a test: is a text closer to them than to the counter-examples, by more than a margin that is
 * fitted to the examples themselves, each left out once?
 */
export function compileSimilar(examples: readonly string[], counterExamples: readonly string[]) {
  const weights = rarity([...examples, ...counterExamples]);
  const positive = examples.map((text) => vectorOf(text, weights));
  const negative = counterExamples.map((text) => vectorOf(text, weights));
  const margin = (vector: Vector, own: Vector[], others: Vector[]) =>
    closeness(vector, own) - closeness(vector, others);
  const without = (list: Vector[], i: number) => list.filter((_, j) => j !== i);
  const threshold = bestThreshold(
    positive.map((vector, i) => margin(vector, without(positive, i), negative)),
    negative.map((vector, i) => margin(vector, positive, without(negative, i))),
  );
  return (text: string): boolean => margin(vectorOf(text, weights), positive, negative) > threshold;
}

function features(text: string): Map<number, number> {
  const cut =
    text.length <= MAX_CHARACTERS
      ? text
      : `${text.slice(0, MAX_CHARACTERS / 2)} ${text.slice(text.length - MAX_CHARACTERS / 2)}`;
  const counts = new Map<number, number>();
  for (const word of cut.toLowerCase().match(/[\p{L}\p{N}_]+|[{}()[\];=<>]/gu) ?? []) {
    add(counts, hash(`w${word}`));
    const padded = ` ${word} `;
    for (let i = 0; i + 3 <= padded.length; i++) add(counts, hash(padded.slice(i, i + 3)));
  }
  return counts;
}

function add(counts: Map<number, number>, feature: number): void {
  counts.set(feature, (counts.get(feature) ?? 0) + 1);
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return (value >>> 0) % BUCKETS;
}

/** What few examples have says more than what all have. */
function rarity(texts: readonly string[]): (feature: number) => number {
  const documents = new Map<number, number>();
  for (const text of texts) for (const feature of features(text).keys()) add(documents, feature);
  return (feature) => Math.log((1 + texts.length) / (1 + (documents.get(feature) ?? 0))) + 0.1;
}

function vectorOf(text: string, weight: (feature: number) => number): Vector {
  const vector = new Map<number, number>();
  let squares = 0;
  for (const [feature, count] of features(text)) {
    const value = (1 + Math.log(count)) * weight(feature);
    vector.set(feature, value);
    squares += value * value;
  }
  const length = Math.sqrt(squares) || 1;
  for (const [feature, value] of vector) vector.set(feature, value / length);
  return vector;
}

function cosine(a: Vector, b: Vector): number {
  const [small, large] = a.size < b.size ? [a, b] : [b, a];
  let sum = 0;
  for (const [feature, value] of small) sum += value * (large.get(feature) ?? 0);
  return sum;
}

/** Mean similarity to the nearest few. */
function closeness(vector: Vector, others: readonly Vector[]): number {
  const nearest = others
    .map((other) => cosine(vector, other))
    .sort((a, b) => b - a)
    .slice(0, NEIGHBOURS);
  return nearest.length === 0 ? 0 : nearest.reduce((sum, value) => sum + value, 0) / nearest.length;
}

/** The threshold between two neighbouring margins that tells most examples from counter-examples. */
function bestThreshold(positive: readonly number[], negative: readonly number[]): number {
  const all = [...positive, ...negative].sort((a, b) => a - b);
  const right = (threshold: number) =>
    positive.filter((margin) => margin > threshold).length / positive.length +
    negative.filter((margin) => margin <= threshold).length / negative.length;
  const between = all.slice(1).map((margin, i) => ((all[i] ?? 0) + margin) / 2);
  return between.reduce((best, threshold) => (right(threshold) > right(best) ? threshold : best), 0);
}
