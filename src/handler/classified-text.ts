import type { ClassifiedText } from "../classify/classifier.ts";
import type { JsonObject, JsonValue } from "../protocols/json.ts";
import type { InferenceRequest } from "../protocols/protocol.ts";

/** Numbers from here on may be somebody's: an account or a card written without quotes. */
const TELLING_NUMBER = 1e6;

/**
 * What classifiers read. A guard must see all that a backend sees, so every text of the body counts: fields that we do
 * not know, names and metadata too. A prompt of token ids cannot be read: that throws, and the tag is unknown.
 */
export function classifiedText(request: InferenceRequest, body: JsonObject): ClassifiedText {
  if (request.promptTokenIds !== undefined) throw new Error("a prompt of token ids cannot be classified");
  const everything: string[] = [];
  const pending: (JsonValue | undefined)[] = [body];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value === "string") {
      if (!value.startsWith("data:image/")) everything.push(value);
    } else if (typeof value === "number") {
      if (value >= TELLING_NUMBER) everything.push(String(value));
    } else if (typeof value === "object" && value !== null) {
      if (!Array.isArray(value)) everything.push(...Object.keys(value));
      for (const item of Object.values(value)) pending.push(item);
    }
  }
  return { everything, lastUser: lastUserText(request) };
}

function lastUserText(request: InferenceRequest): string {
  const last = request.segments.findLast(
    (segment) => (segment.role === "user" || segment.role === "prompt") && segment.image !== true,
  );
  return last?.text ?? "";
}
