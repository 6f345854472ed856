import Type, { type Static, type TProperties, type TSchema } from "typebox";

// Every kind is described once, in these terms: the TypeScript types, the JSON Schemas that files are checked by, the
// CRDs and the reference page all follow from the description (`make gen`).

/** A rule that JSON Schema cannot say, as the API server checks it: a CEL expression over `self`. */
export interface CelRule {
  rule: string;
  message: string;
}

export interface FieldOptions {
  description: string;
  default?: unknown;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minimum?: number;
  maximum?: number;
}

interface ListOptions {
  description: string;
  minItems?: number;
  /** The API server bounds the cost of CEL rules by it. */
  maxItems?: number;
  /** The field by which items are told apart; two items with the same value are an error. */
  key?: string;
}

/** An object with just these fields; an unknown field is an error, never ignored. */
export function closed<P extends TProperties>(
  properties: P,
  options: { description?: string; minProperties?: number; rules?: CelRule[] } = {},
) {
  const { rules, ...more } = options;
  return Type.Object(properties, {
    additionalProperties: false,
    ...more,
    ...(rules === undefined ? {} : { "x-kubernetes-validations": rules }),
  });
}

export const optional = Type.Optional;

/** Non-empty text. */
export function text(description: string, more: Omit<FieldOptions, "description"> = {}) {
  return Type.String({ minLength: 1, maxLength: 253, description, ...more });
}

export function bool(description: string) {
  return Type.Boolean({ description });
}

export function integer(description: string, more: Omit<FieldOptions, "description"> = {}) {
  return Type.Integer({ description, ...more });
}

export function number(description: string, more: Omit<FieldOptions, "description"> = {}) {
  return Type.Number({ description, ...more });
}

export function oneOf<const V extends string[]>(values: readonly [...V], description: string, fallback?: V[number]) {
  return Type.Enum([...values], {
    type: "string",
    description,
    ...(fallback === undefined ? {} : { default: fallback }),
  });
}

export function list<T extends TSchema>(items: T, options: ListOptions) {
  const { key, ...more } = options;
  const keyed = key === undefined ? {} : { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] };
  return Type.Array(items, { maxItems: 64, ...more, ...keyed });
}

export function texts(description: string, maxItems = 64) {
  return list(Type.String({ minLength: 1, maxLength: 253 }), { description, minItems: 1, maxItems });
}

/** One of several shapes. CRDs cannot say that: there the field is open, and the controller's status tells mistakes. */
export function either<T extends TSchema[]>(schemas: [...T], description: string) {
  return Type.Union(schemas, { description });
}

/** A whole number, or one with a unit: `32k`, `2M`. */
export function quantity(description: string) {
  return numberWithUnit("^[0-9]+([.][0-9]+)?(k|M|G)?$", description);
}

/** Milliseconds, or a duration: `250ms`, `2s`, `5m`, `1h`, `7d`. */
export function duration(description: string) {
  return numberWithUnit("^[0-9]+([.][0-9]+)?(ms|s|m|h|d)$", description);
}

function numberWithUnit(pattern: string, description: string) {
  return Type.Unsafe<number | string>({
    "x-kubernetes-int-or-string": true,
    anyOf: [{ type: "integer" }, { type: "string" }],
    pattern,
    description,
  });
}

const BOUNDS = {
  greaterThan: "More than.",
  atLeast: "At least.",
  lessThan: "Less than.",
  atMost: "At most.",
  equals: "Exactly.",
} as const;

/** A range whose bounds must all hold, of whatever `bound` makes: quantities, durations, fractions. */
function range<T extends TSchema>(bound: (description: string) => T, description: string) {
  return closed(
    {
      greaterThan: optional(bound(BOUNDS.greaterThan)),
      atLeast: optional(bound(BOUNDS.atLeast)),
      lessThan: optional(bound(BOUNDS.lessThan)),
      atMost: optional(bound(BOUNDS.atMost)),
      equals: optional(bound(BOUNDS.equals)),
    },
    { description, minProperties: 1 },
  );
}

export const quantityRange = (description: string) => range(quantity, description);
export const durationRange = (description: string) => range(duration, description);
export const numberRange = (description: string) => range((bound) => number(bound), description);

const anyRange = numberRange("");
/** Bounds as written: numbers, or text with a unit. */
export type NumberRange = { [K in keyof Static<typeof anyRange>]?: number | string };
