import type { Static } from "typebox";
import {
  bool,
  closed,
  durationRange,
  either,
  list,
  number,
  numberRange,
  oneOf,
  optional,
  quantityRange,
  text,
  texts,
} from "./schema.ts";

export const API_NAMES = [
  "chat",
  "completions",
  "responses",
  "messages",
  "countTokens",
  "embeddings",
  "models",
  "tokenize",
] as const;
export type ApiName = (typeof API_NAMES)[number];

/** A label expression, as `kubectl -l` takes it. */
const labels = (what: string) =>
  text(`Label expression over ${what}: \`tier=gold\`, \`tier in (gold, silver)\`, \`!legacy\`, joined by commas.`, {
    maxLength: 512,
  });

export const modelSelector = closed(
  {
    names: optional(texts("Model names or globs.")),
    family: optional(text("The `family` of the model's InferenceModel; a glob.")),
    capability: optional(text("A capability that the model's InferenceModel lists.")),
    labels: optional(labels("the labels of the model's InferenceModel")),
  },
  { description: "Selects models; all fields given must hold.", minProperties: 1 },
);
export type ModelSelector = Static<typeof modelSelector>;

const tenantSelector = closed(
  {
    name: optional(text("The tenant's name; a glob.")),
    labels: optional(labels("the labels of the InferenceTenant")),
  },
  { minProperties: 1 },
);

const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
const timeWindow = closed(
  {
    days: optional(
      list(text("", { pattern: `^(${WEEKDAYS.join("|")})(-(${WEEKDAYS.join("|")}))?$` }), {
        description: "Days of the week or ranges of them: `mon-fri`, `sun`. The day on which the window began counts.",
        minItems: 1,
        maxItems: 7,
      }),
    ),
    dates: optional(
      list(text("", { pattern: "^([0-9]{4}-)?[0-9]{2}-[0-9]{2}$" }), {
        description: "Dates, of one year (`2027-01-01`) or of every year (`12-25`).",
        minItems: 1,
        maxItems: 64,
      }),
    ),
    from: optional(text("Start, as `HH:MM`.", { pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$", default: "00:00" })),
    to: optional(
      text("End, exclusive. Before `from`: the next day.", {
        pattern: "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$",
        default: "24:00",
      }),
    ),
    timeZone: optional(text("An IANA time zone such as `Europe/Zurich`.", { default: "UTC" })),
  },
  { description: "A window of the week; all fields given must hold.", minProperties: 1 },
);
export type TimeWindow = Static<typeof timeWindow>;

const poolMatch = closed(
  {
    name: optional(text("One InferencePool of the route. Absent: all of them.")),
    queuedPrompts: optional(quantityRange("Prompts that wait, all workers together.")),
    runningPrompts: optional(quantityRange("Prompts in work, all workers together.")),
    kvCacheUsage: optional(numberRange("Mean share of the KV caches in use, 0 to 1.")),
    healthyWorkers: optional(quantityRange("Workers that can be used.")),
  },
  { description: "What the healthy workers of the route's pools do as a whole.", minProperties: 1 },
);
export type PoolMatch = Static<typeof poolMatch>;

export const requestMatch = closed(
  {
    model: optional(
      either(
        [text("A model name or a glob such as `qwen-*`."), modelSelector],
        "The model asked for: its name, a glob, or a selector. A class holds for each model that it stands for.",
      ),
    ),
    tag: optional(text("A tag of the request.")),
    tags: optional(texts("Tags that the request must all have.", 16)),
    anyTag: optional(texts("Tags of which the request must have at least one.", 16)),
    tenant: optional(either([text("A name or a glob."), tenantSelector], "Whose request it is.")),
    api: optional(
      either(
        [
          oneOf(API_NAMES, "An API."),
          list(oneOf(API_NAMES, "An API."), { description: "Any of these APIs.", minItems: 1 }),
        ],
        `The API by which the request came: ${API_NAMES.map((api) => `\`${api}\``).join(", ")}.`,
      ),
    ),
    path: optional(text("The request's path, or a glob.")),
    headers: optional(
      list(
        closed({
          name: text("The header's name."),
          value: optional(text("Its value, or a glob. Absent: any.", { minLength: 0, maxLength: 1024 })),
        }),
        { description: "Headers that the request must all have.", minItems: 1, maxItems: 16 },
      ),
    ),
    stream: optional(bool("Whether the client asked for a stream.")),
    promptTokens: optional(quantityRange("The prompt's length, estimated.")),
    maxTokens: optional(
      quantityRange("The client's cap on output tokens. A request without a cap has no upper bound."),
    ),
    tools: optional(bool("Whether the request offers tools.")),
    images: optional(bool("Whether the request carries images.")),
    percent: optional(
      number("This share of conversations, 0 to 100: a conversation is always on the same side.", {
        minimum: 0,
        maximum: 100,
      }),
    ),
    pool: optional(poolMatch),
    time: optional(timeWindow),
    expression: optional(
      text(
        "A CEL expression over `model`, `tenant`, `tenantLabels`, `api`, `path`, `headers`, `stream`, `promptTokens`, `maxTokens`, `tools`, `images`, `pool` and `hasTag(name)`.",
        { maxLength: 2048 },
      ),
    ),
  },
  { description: "All fields given must hold.", minProperties: 1 },
);
export type RequestMatch = Static<typeof requestMatch>;

export const BACKEND_TYPES = ["Local", "Provider"] as const;
export type BackendType = (typeof BACKEND_TYPES)[number];

export const backendMatch = closed(
  {
    type: optional(oneOf(BACKEND_TYPES, "`Local`: a worker. `Provider`: a backend outside.")),
    name: optional(text("A worker's or provider's name, or a glob.")),
    labels: optional(
      labels(
        "the labels of the worker or InferenceProvider (its region and zone are `topology.kubernetes.io/region` and `topology.kubernetes.io/zone`)",
      ),
    ),
  },
  { minProperties: 1, description: "All fields given must hold of the backend." },
);

export const candidateMatch = closed(
  {
    backend: optional(backendMatch),
    model: optional(either([text("A name or a glob."), modelSelector], "The candidate's model.")),
    healthy: optional(bool("Whether the backend can be used.")),
    queuedPrompts: optional(quantityRange("Prompts that wait there.")),
    runningPrompts: optional(quantityRange("Prompts in work there.")),
    kvCacheUsage: optional(numberRange("Share of its KV cache in use, 0 to 1.")),
    predictedTTFT: optional(durationRange("Predicted time to the first token.")),
    predictedE2E: optional(durationRange("Predicted time to the last token.")),
    predictedCachedTokens: optional(quantityRange("Prompt tokens that it is believed to hold.")),
    errorRate: optional(numberRange("Share of its recent requests that failed, 0 to 1.")),
    cost: optional(numberRange("Expected cost of this request, in US dollars.")),
  },
  { description: "All fields given must hold of the candidate.", minProperties: 1 },
);
export type CandidateMatch = Static<typeof candidateMatch>;
