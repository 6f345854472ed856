import { celEnv, isCelError, parse, plan } from "@bufbuild/cel";
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import type { TSchema } from "typebox";
import type { CelRule } from "./schema.ts";
import { SCHEMAS, type Schema } from "./schemas.ts";
import { suggestion } from "./suggestion.ts";

/** One thing wrong with an object: where (a path into it) and what, in words for its author. */
export interface Problem {
  path: (string | number)[];
  message: string;
  /** The field's name is wrong, not its value. */
  atKey?: true;
}

const ajv = new Ajv2020({
  allErrors: true,
  allowUnionTypes: true,
  strict: true,
  strictRequired: false,
  strictTypes: false,
  verbose: true,
});
ajv.addVocabulary(["x-kubernetes-int-or-string", "x-kubernetes-list-type"]);
const environment = celEnv();
const programs = new Map<string, ReturnType<typeof plan>>();

/** The API server's own rules, so that a file is refused for what the API server would refuse. */
ajv.addKeyword({
  keyword: "x-kubernetes-validations",
  type: "object",
  errors: "full",
  validate: function validate(rules: CelRule[], self: unknown): boolean {
    const broken = rules.filter(({ rule }) => {
      let program = programs.get(rule);
      if (program === undefined) {
        program = plan(environment, parse(rule));
        programs.set(rule, program);
      }
      const verdict = program({ self } as Parameters<typeof program>[0]);
      return isCelError(verdict) || verdict !== true;
    });
    (validate as { errors?: Partial<ErrorObject>[] }).errors = broken.map(({ message }) => ({
      keyword: "x-kubernetes-validations",
      message,
      params: {},
    }));
    return broken.length === 0;
  },
});
ajv.addKeyword({
  keyword: "x-kubernetes-list-map-keys",
  type: "array",
  errors: "full",
  validate: function validate([key = ""]: string[], items: Record<string, unknown>[]): boolean {
    const seen = new Set<unknown>();
    const repeated = items.filter((item) => seen.size === seen.add(item?.[key]).size).map((item) => item[key]);
    (validate as { errors?: Partial<ErrorObject>[] }).errors = repeated.map((value) => ({
      keyword: "x-kubernetes-list-map-keys",
      message: `more than one item with \`${key}\` ${JSON.stringify(value)}`,
      params: {},
    }));
    return repeated.length === 0;
  },
});
const validators = new Map<Schema | TSchema, ValidateFunction>();

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
  return validate(schema, object);
}

/** Checks a value against a schema, with messages for its author. No problems: it may be used as the schema's type. */
export function validate(schema: Schema | TSchema, value: unknown): Problem[] {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = ajv.compile(schema);
    validators.set(schema, validator);
  }
  return validator(value) ? [] : describeErrors(validator.errors ?? []);
}

function describeErrors(errors: ErrorObject[]): Problem[] {
  const unions = errors.filter((error) => error.keyword === "anyOf");
  // What is wrong inside a union is told by the branch that the value was meant for.
  const meant = errors.filter((error) => {
    if (error.keyword === "anyOf") return meantBranch(error) === undefined;
    const union = unions.find(
      (u) => error.schemaPath.startsWith(`${u.schemaPath}/`) && error.instancePath.startsWith(u.instancePath),
    );
    return union === undefined || error.schemaPath.startsWith(`${union.schemaPath}/${meantBranch(union)}/`);
  });
  const wrongTypes = new Set(meant.filter((error) => error.keyword === "type").map((error) => error.instancePath));
  return meant
    .filter((error) => error.keyword === "type" || !wrongTypes.has(error.instancePath))
    .map((error) => ({
      path: pathOf(error),
      message: describe(error),
      ...(error.keyword === "additionalProperties" ? { atKey: true } : {}),
    }));
}

/** The branch of a union whose type is that of the value. */
function meantBranch(union: ErrorObject): number | undefined {
  const index = (union.schema as { type?: string }[]).findIndex(({ type }) => type === typeOf(union.data));
  return index < 0 ? undefined : index;
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (value === null) return "null";
  return Number.isInteger(value) ? "integer" : typeof value;
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

function describe(error: ErrorObject): string {
  const { keyword, params, data } = error;
  const value = JSON.stringify(data);
  switch (keyword) {
    case "additionalProperties": {
      const field = String(params.additionalProperty);
      const known = Object.keys((error.parentSchema as { properties?: object }).properties ?? {});
      return `unknown field \`${field}\`${suggestion(field, known) || `; known are ${known.join(", ")}`}`;
    }
    case "enum": {
      const allowed = (params.allowedValues as unknown[]).map(String);
      return `${value} is not one of ${allowed.join(", ")}${suggestion(String(data), allowed)}`;
    }
    case "const":
      return `must be ${JSON.stringify(params.allowedValue)}, not ${value}`;
    case "required":
      return `field \`${String(params.missingProperty)}\` is missing`;
    case "type":
      return `must be ${article(String(params.type))}, not ${value}${typeHint(error)}`;
    case "minimum":
      return `must be at least ${params.limit}, not ${value}`;
    case "maximum":
      return `must be at most ${params.limit}, not ${value}`;
    case "minLength":
      return "must not be empty";
    case "minItems":
      return `must have at least ${params.limit} item${params.limit === 1 ? "" : "s"}`;
    case "minProperties":
      return `must say something: an empty object here means nothing`;
    case "pattern":
      return `${value} is not ${patternInWords(String(params.pattern))}`;
    case "anyOf":
      return `must be ${(error.schema as { type?: string }[]).map(({ type }) => article(type ?? "")).join(" or ")}, not ${value}`;
    default:
      return error.message ?? keyword;
  }
}

/** What was probably meant by a value of another type. */
function typeHint({ instancePath, parentSchema, data }: ErrorObject): string {
  const { properties } = parentSchema as { properties?: object };
  if (properties !== undefined && "greaterThan" in properties && ["number", "string"].includes(typeof data))
    return `; write a range such as \`{ greaterThan: ${String(data)} }\``;
  if (instancePath.endsWith("/tag") && Array.isArray(data))
    return "; `tags` takes several that must all hold, `anyTag` any of several";
  return "";
}

function article(type: string): string {
  const word = { integer: "whole number", array: "list", boolean: "true or false" }[type] ?? type;
  if (type === "boolean") return word;
  return `${/^[aeio]/.test(word) ? "an" : "a"} ${word}`;
}

function patternInWords(pattern: string): string {
  if (pattern.includes("(k|M|G)")) return "a quantity: a number, or one with k, M or G such as `32k`";
  if (pattern.includes("(ms|s|m|h|d)")) return "a duration: a number with ms, s, m, h or d such as `250ms`";
  if (pattern.includes("mon|tue")) return "a weekday or a range of them such as `mon-fri`";
  if (pattern.includes("[0-5][0-9]")) return "a time of day such as `08:30`";
  if (pattern.includes("https?")) return "an http:// or https:// URL";
  return `of the form ${pattern}`;
}
