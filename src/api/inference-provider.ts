import type { Static } from "typebox";
import type { Resource } from "./resource.ts";
import { closed, duration, list, number, oneOf, optional, text } from "./schema.ts";

/** In US dollars per million tokens. */
export const price = closed(
  {
    input: number("For a million prompt tokens.", { minimum: 0 }),
    output: number("For a million generated tokens.", { minimum: 0 }),
    cachedInput: optional(number("For a million cached prompt tokens. Absent: as `input`.", { minimum: 0 })),
  },
  { description: "In US dollars per million tokens." },
);
export type Price = Static<typeof price>;

export const PROVIDER_TYPES = ["OpenAI", "Anthropic", "Bedrock", "Databricks", "OpenAICompatible"] as const;

const providerModel = closed({
  name: text("The name that clients and policies use."),
  providerName: optional(text("What the provider calls it. Absent: the same.")),
  price: optional(price),
  expectedTtftMs: optional(
    number("Milliseconds to the first token, to be expected before any answer came.", { minimum: 0, default: 800 }),
  ),
});
export type ProviderModel = Static<typeof providerModel>;

export const inferenceProviderSpec = closed(
  {
    type: oneOf(
      PROVIDER_TYPES,
      "What it speaks. `OpenAI`, `Bedrock` (its OpenAI-compatible endpoint, with an API key), `Databricks` and `OpenAICompatible` take OpenAI's APIs, `Anthropic` takes `/v1/messages`. A provider is a candidate only for requests of an API that it takes.",
    ),
    endpoint: optional(
      text(
        "Base URL. Request paths (`/v1/...`) are appended; an own path replaces `/v1`. `OpenAI`, `Anthropic` and `Bedrock` have a default.",
        { pattern: "^https?://[^/]+", maxLength: 1024 },
      ),
    ),
    region: optional(text("Where it computes; visible to label expressions as `topology.kubernetes.io/region`.")),
    credentialsRef: optional(
      closed(
        { name: text("The Secret's name."), key: optional(text("The key in it.", { default: "apiKey" })) },
        { description: "The Secret with the API key. The client's own credentials never leave." },
      ),
    ),
    models: list(providerModel, { description: "What it offers.", minItems: 1, maxItems: 256, key: "name" }),
    connectTimeout: optional({ ...duration("How long a connection may take."), default: "5s" }),
  },
  {
    rules: [
      {
        rule: "has(self.endpoint) || self.type in ['OpenAI', 'Anthropic'] || (self.type == 'Bedrock' && has(self.region))",
        message: "`endpoint` is missing (OpenAI and Anthropic have a default, Bedrock has one with `region`)",
      },
    ],
  },
);
export type InferenceProviderSpec = Static<typeof inferenceProviderSpec>;

/** A backend outside the cluster; `metadata.name` is what policies call it. */
export type InferenceProvider = Resource<"InferenceProvider", InferenceProviderSpec>;
