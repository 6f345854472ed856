import Type, { type Static, type TSchema } from "typebox";
import { API_NAMES } from "../api/request-match.ts";
import { bool, closed, duration, list, number, oneOf, optional, quantity, text } from "../api/schema.ts";

// How people write a situation down: in test cases, and for `kinfctl explain`.

const names = (description: string) => list(text(""), { description });
const strings = (description: string) =>
  Type.Unsafe<Record<string, string>>({ type: "object", additionalProperties: { type: "string" }, description });
/** An object whose keys are names; an entry that is null takes away what the defaults say. */
const named = <T extends TSchema>(entry: T, description: string) =>
  Type.Unsafe<Record<string, Static<T> | null>>({
    type: "object",
    additionalProperties: { anyOf: [entry, { type: "null" }] },
    description,
  });
/** `null`: nobody can tell. */
const orUnknown = <T>(type: "number" | "integer", description: string) =>
  Type.Unsafe<T | null>({ type: [type, "null"], minimum: 0, description });

export const requestSchema = closed({
  model: optional(text("What the client asks for.")),
  api: optional(oneOf(API_NAMES, "By which API.", "chat")),
  path: optional(text("Its path. Absent: that of the API.")),
  route: optional(text("The HTTPRoute, `namespace/name`. Absent: the default route.", { minLength: 0 })),
  tenant: optional(text("Whose request it is.", { default: "default" })),
  tenantLabels: optional(strings("Absent: those of the InferenceTenant.")),
  prompt: optional(
    text("The last user turn, for the real classifiers; tags given by name come before them.", { maxLength: 100_000 }),
  ),
  tags: optional(names("Tags that hold. Without `prompt` all others do not.")),
  unknownTags: optional(names("Tags that nobody can tell, as when a classifier failed.")),
  promptTokens: optional(quantity("Absent: by the length of `prompt`, or 100.")),
  maxTokens: optional(quantity("The client's cap on output tokens.")),
  stream: optional(bool("Whether it asks for a stream.")),
  tools: optional(bool("Whether it offers tools.")),
  images: optional(bool("Whether it has images.")),
  headers: optional(strings("Headers by name.")),
  percent: optional(number("Where in 0 to 100 its conversation falls.", { minimum: 0, maximum: 100, default: 50 })),
  time: optional(text("The moment, as in `2026-06-03T12:00:00Z` (the default, a Wednesday).")),
  reached: optional(names("Limits that are reached: `POLICY/RULE`.")),
});
export type WrittenRequest = Static<typeof requestSchema>;

const backendFields = {
  models: optional(
    names("What it serves. Absent: what its InferenceProvider lists, else the model asked for by default."),
  ),
  labels: optional(strings("Its labels.")),
  healthy: optional(bool("Whether it can be used.")),
  errorRate: optional(number("Share of its recent requests that failed.", { minimum: 0, maximum: 1 })),
  predictedTTFT: optional(duration("To the first token. Absent: 100 ms of a worker, 800 ms of a provider.")),
  predictedE2E: optional(duration("To the last token. Absent: a second more.")),
  cost: optional(
    number("US dollars for this request. Absent: by the prices of InferenceProvider or InferenceModel.", {
      minimum: 0,
    }),
  ),
};

export const workerSchema = closed({
  ...backendFields,
  pool: optional(text("Its InferencePool.", { default: "pool" })),
  queuedPrompts: optional(orUnknown<number>("integer", "Prompts that wait there; 0 by default, null if nobody knows.")),
  runningPrompts: optional(orUnknown<number>("integer", "Prompts in work there; 0 by default, null if nobody knows.")),
  kvCacheUsage: optional(
    orUnknown<number>("number", "Share of its KV cache in use; 0 by default, null if nobody knows."),
  ),
  cachedTokens: optional(quantity("Prompt tokens that it holds.")),
});
export type WrittenWorker = Static<typeof workerSchema>;

export const providerSchema = closed(backendFields);
export type WrittenProvider = Static<typeof providerSchema>;

export const worldFields = {
  request: optional(requestSchema),
  workers: optional(named(workerSchema, "By name.")),
  providers: optional(named(providerSchema, "By name.")),
};

/** A situation as written. */
export interface World {
  request?: WrittenRequest;
  workers?: Record<string, WrittenWorker | null>;
  providers?: Record<string, WrittenProvider | null>;
}
