import { USAGE_NAMESPACE } from "../../api/wire.ts";
import { extension, type Json, type JsonObject } from "./typed.ts";

/** Where APIs report token counters: the same paths that `protocols/usage.ts` reads, kept in step by a test. */
export const USAGE_PATHS: readonly (readonly string[])[] = ["usage", "response.usage", "message.usage"].flatMap(
  (parent) =>
    [
      "prompt_tokens",
      "completion_tokens",
      "input_tokens",
      "output_tokens",
      "cache_read_input_tokens",
      "cache_creation_input_tokens",
      "prompt_tokens_details.cached_tokens",
      "input_tokens_details.cached_tokens",
    ].map((counter) => [...parent.split("."), ...counter.split(".")]),
);

const MAX_EVENT_BYTES = 10 << 20;

/** Envoy reads usage out of responses itself, event streams and JSON alike, into the dynamic metadata of the request. */
export function usageFilters(): Json[] {
  return [
    extension("envoy.filters.http.sse_to_metadata", "extensions.filters.http.sse_to_metadata.v3.SseToMetadata", {
      response_rules: {
        content_parser: extension(
          "envoy.content_parsers.json",
          "extensions.content_parsers.json.v3.JsonContentParser",
          {
            rules: USAGE_PATHS.map((path) => ({ rule: ruleFor(path) })),
          },
        ),
        max_event_size: MAX_EVENT_BYTES,
      },
    }),
    extension("envoy.filters.http.json_to_metadata", "extensions.filters.http.json_to_metadata.v3.JsonToMetadata", {
      response_rules: { rules: USAGE_PATHS.map(ruleFor) },
    }),
  ];
}

function ruleFor(path: readonly string[]): JsonObject {
  const parent = path.indexOf("usage") + 1;
  return {
    selectors: path.map((key) => ({ key })),
    on_present: { metadata_namespace: USAGE_NAMESPACE, key: path.slice(parent).join("."), type: "NUMBER" },
  };
}
