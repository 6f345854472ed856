import type { Price } from "../api/inference-provider.ts";

/** US dollars for a request; 0 where no price is known. `promptTokens` includes the cached ones. */
export function costOf(
  price: Price | undefined,
  promptTokens: number,
  cachedTokens: number,
  outputTokens: number,
): number {
  if (price === undefined) return 0;
  const { input, output, cachedInput = input } = price;
  return ((promptTokens - cachedTokens) * input + cachedTokens * cachedInput + outputTokens * output) / 1e6;
}
