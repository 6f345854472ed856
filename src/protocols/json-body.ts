import { isUtf8 } from "node:buffer";
import type { JsonObject, JsonValue } from "./json.ts";
import { badRequest, type Result } from "./protocol.ts";

/** A body read once, with what it takes to change its model without writing it anew. */
export interface JsonBody {
  value: JsonObject;
  bytes: Buffer;
  /** Byte offsets of the value of the top-level `model` field, quotes included. */
  modelSpan?: { start: number; end: number };
}

const MAX_DEPTH = 200;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Parses a request body so that everyone who reads the same bytes later must see the same values: UTF-8 only, and no
 * object with a key twice (JSON leaves open which one counts, so a policy and a worker might differ).
 */
export function parseJsonBody(bytes: Buffer): Result<JsonBody> {
  if (!isUtf8(bytes)) return badRequest("the request body is not valid UTF-8");
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    return badRequest(`the request body is not valid JSON: ${(error as Error).message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return badRequest("the request body must be a JSON object");
  const scan = scanKeys(bytes);
  if (scan.depth > MAX_DEPTH) return badRequest(`the request body is nested deeper than ${MAX_DEPTH} levels`);
  if (scan.keys !== countKeys(value as JsonObject))
    return badRequest("the request body has an object with the same key twice");
  return {
    ok: true,
    value: { value: value as JsonObject, bytes, ...(scan.modelSpan ? { modelSpan: scan.modelSpan } : {}) },
  };
}

/** The body with another model name; all other bytes stay as the client sent them. */
export function withModel(body: JsonBody, model: string): Buffer {
  const span = body.modelSpan;
  if (span === undefined) return body.bytes;
  return Buffer.concat([
    body.bytes.subarray(0, span.start),
    Buffer.from(JSON.stringify(model)),
    body.bytes.subarray(span.end),
  ]);
}

/** Walks the bytes of valid JSON from string to string; a string before a colon is a key. */
function scanKeys(bytes: Buffer): { keys: number; depth: number; modelSpan?: { start: number; end: number } } {
  let keys = 0;
  let level = 0;
  let depth = 0;
  let modelSpan: { start: number; end: number } | undefined;
  let at = 0;
  while (at < bytes.length) {
    const open = indexOrEnd(bytes, at);
    for (; at < open; at++) {
      const byte = bytes[at];
      if (byte === 0x7b || byte === 0x5b) {
        level++;
        if (level > depth) depth = level;
      } else if (byte === 0x7d || byte === 0x5d) level--;
    }
    if (open === bytes.length) break;
    const close = closingQuote(bytes, open);
    at = skipSpace(bytes, close + 1);
    if (bytes[at] !== 0x3a) continue;
    keys++;
    if (level !== 1 || !isModelKey(bytes, open, close)) continue;
    const start = skipSpace(bytes, at + 1);
    if (bytes[start] === QUOTE) modelSpan = { start, end: closingQuote(bytes, start) + 1 };
  }
  return { keys, depth, ...(modelSpan ? { modelSpan } : {}) };
}

function indexOrEnd(bytes: Buffer, from: number): number {
  const index = bytes.indexOf(QUOTE, from);
  return index < 0 ? bytes.length : index;
}

function closingQuote(bytes: Buffer, open: number): number {
  let at = open + 1;
  for (;;) {
    at = indexOrEnd(bytes, at);
    let backslashes = 0;
    while (bytes[at - 1 - backslashes] === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return at;
    at++;
  }
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++;
  return at;
}

function isModelKey(bytes: Buffer, open: number, close: number): boolean {
  const raw = bytes.subarray(open, close + 1);
  const plain = raw.includes(BACKSLASH) ? JSON.parse(raw.toString()) : raw.subarray(1, -1).toString("latin1");
  return plain === "model";
}

function countKeys(root: JsonObject): number {
  let keys = 0;
  const pending: (JsonValue | undefined)[] = [root];
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (Array.isArray(value)) {
      for (const item of value) if (typeof item === "object" && item !== null) pending.push(item);
    } else if (typeof value === "object" && value !== null) {
      for (const item of Object.values(value)) {
        keys++;
        if (typeof item === "object" && item !== null) pending.push(item);
      }
    }
  }
  return keys;
}
