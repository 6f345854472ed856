import { parseQuantity } from "../api/quantity.ts";
import type { NumberRange } from "../api/schema.ts";

/** Compiles a range to a test; all bounds given must hold. */
export function compileRange(range: NumberRange): (value: number) => boolean {
  const bound = (quantity: number | string | undefined, otherwise: number) =>
    quantity === undefined ? otherwise : parseQuantity(quantity);
  const above = bound(range.greaterThan, Number.NEGATIVE_INFINITY);
  const least = bound(range.atLeast, Number.NEGATIVE_INFINITY);
  const below = bound(range.lessThan, Number.POSITIVE_INFINITY);
  const most = bound(range.atMost, Number.POSITIVE_INFINITY);
  const equal = range.equals === undefined ? undefined : parseQuantity(range.equals);
  // An absent upper bound lets infinity through, which is what a request without a cap has.
  return (value) =>
    (value > above || range.greaterThan === undefined) &&
    value >= least &&
    (value < below || range.lessThan === undefined) &&
    value <= most &&
    (equal === undefined || value === equal);
}
