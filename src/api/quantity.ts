const UNITS: Record<string, number> = {
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  ms: 1,
  s: 1e3,
  m: 60e3,
  h: 3600e3,
  d: 86_400e3,
};

/** `32k` is 32,000; durations count in milliseconds: `250ms`, `2s`. The schema has checked the form. */
export function parseQuantity(quantity: number | string): number {
  if (typeof quantity === "number") return quantity;
  const [, digits, unit] = /^([0-9.]+)(.*)$/.exec(quantity) ?? [];
  return Number(digits) * (UNITS[unit ?? ""] ?? Number.NaN);
}
