import type { JsonObject } from "./json.ts";
import { collectUsage, normalizeUsage, type RawUsage, type Usage } from "./usage.ts";

const USAGE_KEY = Buffer.from('"usage"');
const DATA = Buffer.from("data:");
const NEWLINE = 0x0a;
/** An event or body longer than this is not looked at, so that memory is bounded. */
const MAX_EVENT_BYTES = 1 << 20;
const MAX_BODY_BYTES = 16 << 20;

/**
 * Finds token usage in a response as it streams by, for Envoys that cannot. Server-sent events are cut at line ends
 * wherever the chunks are cut; only the few that mention usage are parsed. Inside a JSON string the bytes `"usage"`
 * cannot occur unescaped, so an answer that talks about usage is not mistaken for it.
 */
export class UsageReader {
  readonly #events: boolean;
  readonly #raw: RawUsage = {};
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #found = false;

  constructor(contentType: string) {
    this.#events = contentType.startsWith("text/event-stream");
  }

  push(chunk: Buffer): void {
    if (chunk.length === 0) return;
    if (!this.#events) {
      this.#keep(chunk);
      return;
    }
    const lastNewline = chunk.lastIndexOf(NEWLINE);
    if (lastNewline < 0) {
      this.#keep(chunk);
      return;
    }
    const whole =
      this.#pendingBytes > 0
        ? Buffer.concat([...this.#pending, chunk.subarray(0, lastNewline)])
        : chunk.subarray(0, lastNewline);
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#readLines(whole);
    if (lastNewline + 1 < chunk.length) this.#keep(Buffer.from(chunk.subarray(lastNewline + 1)));
  }

  /** The usage once the response ended, in whole or in part. */
  end(): Usage {
    if (this.#pendingBytes > 0) {
      const rest = Buffer.concat(this.#pending);
      if (this.#events) this.#readLines(rest);
      else this.#parse(rest);
      this.#pending = [];
      this.#pendingBytes = 0;
    }
    return this.#found ? normalizeUsage(this.#raw) : {};
  }

  #keep(chunk: Buffer): void {
    this.#pendingBytes += chunk.length;
    if (this.#pendingBytes > (this.#events ? MAX_EVENT_BYTES : MAX_BODY_BYTES)) {
      this.#pending = [];
      this.#pendingBytes = 0;
    } else this.#pending.push(chunk);
  }

  #readLines(lines: Buffer): void {
    for (let hit = lines.indexOf(USAGE_KEY); hit >= 0; ) {
      const start = lines.lastIndexOf(NEWLINE, hit) + 1;
      const newline = lines.indexOf(NEWLINE, hit);
      const end = newline < 0 ? lines.length : newline;
      const isData = lines.subarray(start, start + DATA.length).equals(DATA);
      if (isData && !isNull(lines, hit + USAGE_KEY.length)) this.#parse(lines.subarray(start + DATA.length, end));
      hit = lines.indexOf(USAGE_KEY, end);
    }
  }

  #parse(json: Buffer): void {
    try {
      const event: unknown = JSON.parse(json.toString("utf8"));
      if (typeof event !== "object" || event === null || Array.isArray(event)) return;
      collectUsage(event as JsonObject, this.#raw);
      this.#found = true;
    } catch {
      // A broken event from a worker carries no usage; the client gets it as it came.
    }
  }
}

/** Whether the value after a key is null, as `usage` is in all chunks but the last of some servers. */
function isNull(lines: Buffer, afterKey: number): boolean {
  let at = afterKey;
  while (lines[at] === 0x3a || lines[at] === 0x20) at++;
  return lines[at] === 0x6e;
}
