import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { SCHEMAS } from "./schemas.ts";

/** One thing wrong with an object: where (a path into it) and what, in words for its author. */
export interface Problem {
  path: (string | number)[];
  message: string;
}

const ajv = new Ajv2020({
  allErrors: true,
  allowUnionTypes: true,
  strict: true,
  strictRequired: false,
  strictTypes: false,
});
const validators = new Map<string, ValidateFunction>();

/** Checks an object of any kind against its schema. No problems: it may be used as that kind's type. */
export function validateResource(object: unknown): Problem[] {
  if (typeof object !== "object" || object === null || Array.isArray(object)) {
    return [{ path: [], message: "expected an object with apiVersion, kind and metadata" }];
  }
  const kind = "kind" in object ? object.kind : undefined;
  const schema = typeof kind === "string" ? SCHEMAS[kind] : undefined;
  if (typeof kind !== "string" || schema === undefined) {
    return [
      {
        path: ["kind"],
        message: `unknown kind ${JSON.stringify(kind)}${suggestion(String(kind), Object.keys(SCHEMAS))}`,
      },
    ];
  }
  let validator = validators.get(kind);
  if (validator === undefined) {
    validator = ajv.compile(schema);
    validators.set(kind, validator);
  }
  if (validator(object)) return [];
  return describeErrors(validator.errors ?? [], schema);
}

function describeErrors(errors: ErrorObject[], schema: unknown): Problem[] {
  // Branch failures under an anyOf/oneOf are summed up by the entry of the anyOf/oneOf itself.
  const branches = errors.filter((e) => e.keyword === "anyOf" || e.keyword === "oneOf").map((e) => `${e.schemaPath}/`);
  const own = errors.filter((e) => !branches.some((branch) => e.schemaPath.startsWith(branch)));
  return own.map((error) => ({ path: pathOf(error), message: describe(error, schema) }));
}

function pathOf(error: ErrorObject): (string | number)[] {
  const path = error.instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  const extra = error.params.additionalProperty;
  return typeof extra === "string" ? [...path, extra] : path;
}

function describe(error: ErrorObject, schema: unknown): string {
  const { keyword, params } = error;
  if (keyword === "additionalProperties") {
    const field = String(params.additionalProperty);
    return `unknown field \`${field}\`${suggestion(field, knownFields(schema, error.schemaPath))}`;
  }
  if (keyword === "enum") return `must be one of ${(params.allowedValues as string[]).join(", ")}`;
  if (keyword === "const") return `must be ${JSON.stringify(params.allowedValue)}`;
  if (keyword === "required") return `field \`${String(params.missingProperty)}\` is missing`;
  if (keyword === "oneOf" && error.instancePath.includes("/rules/"))
    return "a rule needs exactly one of `route` and `reject`";
  if (keyword === "anyOf" || keyword === "oneOf") return "has none of the allowed forms";
  return error.message ?? keyword;
}

function knownFields(schema: unknown, schemaPath: string): string[] {
  let node: unknown = schema;
  for (const part of schemaPath.split("/").slice(1, -1)) {
    if (typeof node !== "object" || node === null) return [];
    node = (node as Record<string, unknown>)[decodeURIComponent(part).replaceAll("~1", "/")];
  }
  const properties =
    typeof node === "object" && node !== null ? (node as { properties?: object }).properties : undefined;
  return Object.keys(properties ?? {});
}

/** `, did you mean ...?` for the closest known word, or nothing. */
export function suggestion(word: string, known: string[]): string {
  const ranked = known.map((candidate) => ({
    candidate,
    distance: editDistance(word.toLowerCase(), candidate.toLowerCase()),
  }));
  ranked.sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= Math.max(2, word.length / 3)
    ? `, did you mean \`${best.candidate}\`?`
    : "";
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitution, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
