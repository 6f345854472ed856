import type { InferenceHandler } from "../handler/handler.ts";

/**
 * Explains a request as it would be decided now. The query names what a client's request would carry beside its body:
 * `path` (default: chat completions), `route` (an HTTPRoute's `namespace/name`), and `header=name:value`, repeatable.
 */
export async function explainQuery(handler: InferenceHandler, query: URLSearchParams, body: Buffer) {
  const headers = query.getAll("header").map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
  });
  const explained = await handler.explain(
    {
      method: "POST",
      path: query.get("path") ?? "/v1/chat/completions",
      headers: new Map(headers),
      // As through our own gateway, where providers can be reached.
      observe: "access-log",
      acrossClusters: true,
      routeName: query.get("route") ?? undefined,
      subset: undefined,
      claim: () => undefined,
    },
    body,
  );
  return explained.ok
    ? { status: 200, answer: explained.value }
    : { status: explained.error.status, answer: { error: explained.error.message } };
}
