import type { Classifier } from "./classifier.ts";
import { complexityFeatures } from "./complexity-features.ts";
import weights from "./complexity-weights.json" with { type: "json" };

/** From these estimates of "a small model manages" on, a prompt is called easy, and below them hard. */
const LOW_FROM = 0.75;
const HIGH_BELOW = 0.35;

/**
 * How much of a model a prompt needs: a hint for cost, not a truth. A logistic regression over surface features, trained
 * by `benchmarks/train-complexity.ts` on whether a weak model answered a prompt correctly.
 */
export const complexityClassifier: Classifier = {
  tags: ["complexity-low", "complexity-medium", "complexity-high"],
  classify: (text) => new Set([complexityTag(easiness(text.lastUser))]),
};

/** The estimated probability that a small model manages the prompt. */
export function easiness(prompt: string): number {
  const features = complexityFeatures(prompt);
  let sum = 0;
  for (let i = 0; i < features.length; i++) sum += (features[i] ?? 0) * (weights.weights[i] ?? 0);
  return 1 / (1 + Math.exp(-sum));
}

function complexityTag(probabilityEasy: number): string {
  if (probabilityEasy >= LOW_FROM) return "complexity-low";
  return probabilityEasy < HIGH_BELOW ? "complexity-high" : "complexity-medium";
}
