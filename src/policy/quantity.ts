import type { NumberRange, Quantity } from "../api/inference-policy.ts";

const UNITS: Record<string, number> = { "": 1, k: 1_000, M: 1_000_000, ms: 1, s: 1_000, m: 60_000 };

/** `32k` is 32,000; durations count in milliseconds: `250ms`, `2s`. The schema has checked the form. */
export function parseQuantity(quantity: Quantity): number {
  if (typeof quantity === "number") return quantity;
  const [, digits, unit] = /^([0-9.]+)(.*)$/.exec(quantity) ?? [];
  return Number(digits) * (UNITS[unit ?? ""] ?? Number.NaN);
}

/** Compiles a range to a test; all bounds given must hold. */
export function compileRange(range: NumberRange): (value: number) => boolean {
  const bound = (quantity: Quantity | undefined, otherwise: number) =>
    quantity === undefined ? otherwise : parseQuantity(quantity);
  const above = bound(range.greaterThan, Number.NEGATIVE_INFINITY);
  const least = bound(range.atLeast, Number.NEGATIVE_INFINITY);
  const below = bound(range.lessThan, Number.POSITIVE_INFINITY);
  const most = bound(range.atMost, Number.POSITIVE_INFINITY);
  const equal = range.equals === undefined ? undefined : parseQuantity(range.equals);
  return (value) =>
    value > above && value >= least && value < below && value <= most && (equal === undefined || value === equal);
}

/** Compiles a name or a glob (`*` for any run of characters) to a test. */
export function compileGlob(pattern: string): (name: string) => boolean {
  if (!pattern.includes("*")) return (name) => name === pattern;
  const parts = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const expression = new RegExp(`^${parts.join(".*")}$`, "s");
  return (name) => expression.test(name);
}

/** One name or several, globs allowed: any may match. */
export function compileNames(names: string | { names: string[] }): (name: string) => boolean {
  const tests = (typeof names === "string" ? [names] : names.names).map(compileGlob);
  return (name) => tests.some((test) => test(name));
}
