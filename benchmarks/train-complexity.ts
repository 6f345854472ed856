// Trains src/classify/complexity-weights.json: node benchmarks/train-complexity.ts PROMPTS.jsonl
// Each line: {"prompt", "source", "weak_correct"}. Chat prompts, which such data lacks, come from the templates below.
import { readFileSync, writeFileSync } from "node:fs";
import { COMPLEXITY_FEATURES, complexityFeatures } from "../src/classify/complexity-features.ts";

interface Sample {
  features: Float64Array;
  easy: number;
  weight: number;
}

const EASY_TASKS = [
  "Hi!",
  "Hello, how are you?",
  "Thanks, that helps.",
  "Translate 'good morning' into %",
  "What is the capital of %?",
  "Define %.",
  "Spell % backwards.",
  "Give me a synonym for %.",
  "Fix the typo: I like %s verry much.",
  "Summarize in one sentence: % is popular this year.",
  "List three facts about %.",
  "Write a short greeting card about %.",
  "Is % a noun?",
  "What colour is %?",
  "Rephrase politely: send me the % now",
  "Convert 5 miles to kilometres for my % trip",
  "Name a famous % from history",
  "Say hello in %",
  "What day comes after Monday in %?",
  "Bonjour, traduis % en anglais",
  "Hola, traduce % al inglés",
  "Hallo, übersetze % ins Englische",
  "你好,请翻译 %",
  "%を英語に翻訳して",
  "안녕, % 번역해 줘",
  "Привет, переведи %",
];
const HARD_TASKS = [
  "Prove that every % group of prime order is cyclic and give a counterexample when the order is composite.",
  "Design a distributed % system that tolerates two failures, and analyse its trade-offs step by step.",
  "Derive the closed form of the % recurrence and evaluate its asymptotic complexity.",
  "Implement a lock-free % queue in C++ and explain why it is linearizable.",
  "Debug this % deadlock: thread A holds the lock while waiting for thread B, which waits for the condition variable. Propose a refactor.",
  "Analyze the macroeconomic effect of % tariffs on employment, compare two theories and critique the evidence.",
  "Optimize the % query plan given the following schema and statistics, and explain why each index helps.",
  "Formalize the argument about % in first-order logic and evaluate whether the conclusion follows.",
  "Solve the partial differential equation for % with Neumann boundary conditions.",
  "Compare three architectures for %, evaluate cost, latency and consistency, and recommend one with proof.",
  "证明 % 的收敛性并分析其复杂度",
  "%のアルゴリズムを設計し、正しさを証明せよ",
  "Beweise die Aussage über % und analysiere alle Sonderfälle",
  "Démontre la convergence de % et analyse la complexité",
  "Докажи теорему о % и проанализируй граничные случаи",
];
const TOPICS = [
  "coffee",
  "graph",
  "French",
  "banking",
  "weather",
  "network",
  "music",
  "protein",
  "garden",
  "vector",
  "football",
  "rocket",
  "kitchen",
  "matrix",
  "history",
  "memory",
];

const file = process.argv[2];
if (file === undefined) throw new Error("usage: train-complexity.ts PROMPTS.jsonl");
const labelled = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line): { prompt: string; weak_correct: boolean } => JSON.parse(line));
const data: Sample[] = labelled.map((row) => ({
  features: complexityFeatures(row.prompt),
  easy: row.weak_correct ? 1 : 0,
  weight: 1,
}));
const held = data.filter((_, i) => i % 5 === 0);
const train = data.filter((_, i) => i % 5 !== 0);
for (const topic of TOPICS) {
  for (const task of EASY_TASKS)
    train.push({ features: complexityFeatures(task.replace("%", topic)), easy: 1, weight: 8 });
  for (const task of HARD_TASKS)
    train.push({ features: complexityFeatures(task.replace("%", topic)), easy: 0, weight: 8 });
}

const weights = new Float64Array(COMPLEXITY_FEATURES.length);
const score = (features: Float64Array) =>
  1 / (1 + Math.exp(-features.reduce((sum, f, i) => sum + f * (weights[i] ?? 0), 0)));
const total = train.reduce((sum, sample) => sum + sample.weight, 0);
for (let step = 0; step < 4000; step++) {
  const gradient = new Float64Array(weights.length);
  for (const { features, easy, weight } of train) {
    const error = weight * (score(features) - easy);
    for (let i = 0; i < features.length; i++) gradient[i] = (gradient[i] ?? 0) + error * (features[i] ?? 0);
  }
  for (let i = 0; i < weights.length; i++)
    weights[i] = (weights[i] ?? 0) - 1.5 * ((gradient[i] ?? 0) / total + 0.0002 * (weights[i] ?? 0));
}

/** Area under the ROC curve, by ranks. */
function auc(samples: Sample[]): number {
  const ranked = samples.map((s) => ({ easy: s.easy, p: score(s.features) })).sort((a, b) => a.p - b.p);
  let rankSum = 0;
  ranked.forEach((s, i) => {
    if (s.easy) rankSum += i + 1;
  });
  const positive = ranked.filter((s) => s.easy).length;
  return (rankSum - (positive * (positive + 1)) / 2) / (positive * (ranked.length - positive));
}

const rounded = [...weights].map((w) => Number(w.toFixed(4)));
const low = held.filter((s) => score(s.features) >= 0.75);
console.log(
  `held-out AUC ${auc(held).toFixed(3)}, base rate ${(held.reduce((s, x) => s + x.easy, 0) / held.length).toFixed(2)}, called low ${low.length}/${held.length}, easy among them ${(low.reduce((s, x) => s + x.easy, 0) / Math.max(1, low.length)).toFixed(2)}`,
);
writeFileSync(
  new URL("../src/classify/complexity-weights.json", import.meta.url),
  `${JSON.stringify({ features: COMPLEXITY_FEATURES, weights: rounded }, null, 2)}\n`,
);
