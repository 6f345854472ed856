import { USAGE_NAMESPACE } from "../../api/wire.ts";
import { USAGE_COUNTERS, USAGE_PARENTS } from "../../protocols/usage.ts";
import { extension, type Json, type JsonObject } from "./typed.ts";

/** Where APIs report token counters, as the in-stream reader looks for them too. */
const USAGE_PATHS: readonly (readonly string[])[] = USAGE_PARENTS.flatMap((parent) =>
  USAGE_COUNTERS.map((counter) => [...parent, ...counter]),
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
