import type { JsonObject, JsonValue } from "./json.ts";

/** Tokens as the serving side reported them. A field that was not reported is absent, never 0. */
export interface Usage {
  /** All prompt tokens, cached ones included. */
  promptTokens?: number;
  cachedTokens?: number;
  outputTokens?: number;
}

/** Counters under the names by which the APIs report them, in any of the shapes below. */
export type RawUsage = { [name: string]: number | undefined };

/** Where the APIs put counters: OpenAI chat and completions, Responses, Anthropic (message_start, message_delta). */
export const USAGE_PARENTS = [["usage"], ["response", "usage"], ["message", "usage"]] as const;
export const USAGE_COUNTERS = [
  ["prompt_tokens"],
  ["completion_tokens"],
  ["input_tokens"],
  ["output_tokens"],
  ["cache_read_input_tokens"],
  ["cache_creation_input_tokens"],
  ["prompt_tokens_details", "cached_tokens"],
  ["input_tokens_details", "cached_tokens"],
] as const;

/** Adds the counters that a response event carries to `raw`; later events overwrite earlier ones. */
export function collectUsage(event: JsonObject, raw: RawUsage): void {
  for (const parent of USAGE_PARENTS) {
    const usage = at(event, parent);
    if (usage === undefined || usage === null) continue;
    for (const counter of USAGE_COUNTERS) {
      const value = at(usage, counter);
      if (typeof value === "number" && Number.isFinite(value) && value >= 0) raw[counter.join(".")] = value;
    }
  }
}

function at(value: JsonValue | undefined, path: readonly string[]): JsonValue | undefined {
  let node = value;
  for (const key of path) {
    if (typeof node !== "object" || node === null || Array.isArray(node)) return undefined;
    node = node[key];
  }
  return node;
}

/**
 * One meaning for all APIs. OpenAI's prompt and input tokens include the cached ones; Anthropic's `input_tokens` excludes
 * what was read from and written to the cache. vLLM's `message_start` carries the full input count before the cache
 * fields are known and `message_delta` the reduced one, so the later value with its own cache fields is right.
 */
export function normalizeUsage(raw: RawUsage): Usage {
  const usage: Usage = {};
  const openai = raw.prompt_tokens;
  const input = raw.input_tokens;
  const cacheRead = raw.cache_read_input_tokens;
  const cacheWritten = raw.cache_creation_input_tokens;
  const cached = raw["prompt_tokens_details.cached_tokens"] ?? raw["input_tokens_details.cached_tokens"] ?? cacheRead;
  if (openai !== undefined) usage.promptTokens = openai;
  else if (input !== undefined) usage.promptTokens = input + (cacheRead ?? 0) + (cacheWritten ?? 0);
  if (cached !== undefined) usage.cachedTokens = cached;
  const output = raw.completion_tokens ?? raw.output_tokens;
  if (output !== undefined) usage.outputTokens = output;
  return usage;
}
