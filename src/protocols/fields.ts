import type { JsonObject, JsonValue } from "./json.ts";
import { badRequest, type PromptSegment, type RequestError, type Result } from "./protocol.ts";

/** Fields that every generating API has. */
export function readCommon(body: JsonObject): Result<{ model: string; stream: boolean; cacheSalt?: string }> {
  const { model, stream, cache_salt } = body;
  if (model === undefined) return badRequest("the field `model` is missing", "model");
  if (typeof model !== "string" || model === "") return badRequest("`model` must be a non-empty string", "model");
  if (stream !== undefined && stream !== null && typeof stream !== "boolean")
    return badRequest("`stream` must be true or false", "stream");
  const salt = typeof cache_salt === "string" ? { cacheSalt: cache_salt } : {};
  return { ok: true, value: { model, stream: stream === true, ...salt } };
}

/** A cap on output tokens: a whole number above 0, or null for none. */
export function readTokenCap(body: JsonObject, ...names: string[]): Result<{ maxTokens?: number }> {
  for (const name of names) {
    const cap = body[name];
    if (cap === undefined || cap === null) continue;
    if (typeof cap !== "number" || !Number.isInteger(cap) || cap < 0)
      return badRequest(`\`${name}\` must be a whole number`, name);
    return { ok: true, value: { maxTokens: cap } };
  }
  return { ok: true, value: {} };
}

export function offersTools(body: JsonObject): boolean {
  return Array.isArray(body.tools) && body.tools.length > 0;
}

/** Tool definitions as one segment: chat templates put them into the system part. */
export function toolSegments(body: JsonObject): PromptSegment[] {
  return offersTools(body) ? [{ role: "tools", text: JSON.stringify(body.tools) }] : [];
}

/** Puts tool definitions where templates do: after a leading system message, else first. */
export function withTools(segments: PromptSegment[], tools: PromptSegment[]): PromptSegment[] {
  const first = segments[0];
  return first?.role === "system" ? [first, ...tools, ...segments.slice(1)] : [...tools, ...segments];
}

/** The messages of a chat as segments, or what is wrong with them. `name` is the field they came from. */
export function readMessages(messages: JsonValue | undefined, name: string): Result<PromptSegment[]> {
  if (messages === undefined) return badRequest(`the field \`${name}\` is missing`, name);
  if (!Array.isArray(messages)) return badRequest(`\`${name}\` must be a list`, name);
  const segments: PromptSegment[] = [];
  for (const [i, message] of messages.entries()) {
    if (!isObject(message)) return badRequest(`\`${name}[${i}]\` must be an object`, `${name}[${i}]`);
    const role = message.role ?? message.type;
    if (typeof role !== "string") return badRequest(`\`${name}[${i}].role\` must be a string`, `${name}[${i}].role`);
    const error = readContent(message.content, role, `${name}[${i}].content`, segments);
    if (error !== undefined) return { ok: false, error };
    for (const field of ["tool_calls", "arguments", "output"]) {
      const value = message[field];
      if (value !== undefined && value !== null)
        segments.push({ role, text: typeof value === "string" ? value : JSON.stringify(value) });
    }
  }
  return { ok: true, value: segments };
}

/** Appends a content field (a string, or a list of parts of any API) to `segments`. */
export function readContent(
  content: JsonValue | undefined,
  role: string,
  name: string,
  segments: PromptSegment[],
): RequestError | undefined {
  if (content === undefined || content === null) return undefined;
  if (typeof content === "string") {
    segments.push({ role, text: content });
    return undefined;
  }
  if (!Array.isArray(content)) return badRequest(`\`${name}\` must be a string or a list`, name).error;
  for (const [i, part] of content.entries()) {
    if (typeof part === "string") segments.push({ role, text: part });
    else if (isObject(part)) readPart(part, role, segments);
    else return badRequest(`\`${name}[${i}]\` must be an object`, `${name}[${i}]`).error;
  }
  return undefined;
}

/** A part of whatever kind: its text, its image, or as JSON what we do not know. Nothing is left out: policies look here. */
function readPart(part: JsonObject, role: string, segments: PromptSegment[]): void {
  const { type, text } = part;
  if (typeof text === "string" && (type === "text" || type === "input_text" || type === "output_text")) {
    // Claude Code's billing block changes with every request and is dropped by vLLM before the template.
    if (!text.startsWith("x-anthropic-billing-header:")) segments.push({ role, text });
    return;
  }
  if (type === "image_url" || type === "input_image" || type === "image") {
    segments.push({ role, text: imageIdentity(part), image: true });
    return;
  }
  if (type === "tool_result" && part.content !== undefined) {
    if (readContent(part.content, role, "content", segments) === undefined) return;
  }
  segments.push({ role, text: JSON.stringify(part) });
}

function imageIdentity(part: JsonObject): string {
  const source = part.image_url ?? part.source ?? part.file_id ?? null;
  return typeof source === "string" ? source : JSON.stringify(source);
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function countImages(segments: PromptSegment[]): number {
  return segments.reduce((count, segment) => count + (segment.image ? 1 : 0), 0);
}
