/** gRPC's length-prefixed messages: one byte of flags, four of length, the message. */
const PREFIX_BYTES = 5;

/** Messages with their prefixes, one after another in one buffer. */
export function frame(messages: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const message of messages) length += PREFIX_BYTES + message.length;
  const framed = Buffer.allocUnsafe(length);
  let at = 0;
  for (const message of messages) {
    framed[at] = 0;
    framed.writeUInt32BE(message.length, at + 1);
    framed.set(message, at + PREFIX_BYTES);
    at += PREFIX_BYTES + message.length;
  }
  return framed;
}

/** Cuts a byte stream into messages wherever its chunks are cut. A message within one chunk is not copied. */
export class FrameReader {
  readonly #maxMessageBytes: number;
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  constructor(maxMessageBytes: number) {
    this.#maxMessageBytes = maxMessageBytes;
  }

  /** Calls `onMessage` for each whole message. Returns what is wrong with the stream, if anything. */
  push(chunk: Buffer, onMessage: (message: Buffer) => void): string | undefined {
    this.#pending.push(chunk);
    this.#pendingBytes += chunk.length;
    for (;;) {
      if (this.#pendingBytes < PREFIX_BYTES) return undefined;
      const prefix = this.#atLeast(PREFIX_BYTES);
      if (prefix[0] !== 0) return "compressed messages are not supported";
      const length = prefix.readUInt32BE(1);
      if (length > this.#maxMessageBytes) return `a message of ${length} bytes is larger than ${this.#maxMessageBytes}`;
      if (this.#pendingBytes < PREFIX_BYTES + length) return undefined;
      const whole = this.#joined();
      const rest = whole.subarray(PREFIX_BYTES + length);
      this.#pending = rest.length > 0 ? [rest] : [];
      this.#pendingBytes = rest.length;
      onMessage(whole.subarray(PREFIX_BYTES, PREFIX_BYTES + length));
    }
  }

  /** A buffer with at least the first `bytes` of what is pending. A long message is joined once, when it is whole. */
  #atLeast(bytes: number): Buffer {
    const first = this.#pending[0];
    return first !== undefined && first.length >= bytes ? first : this.#joined();
  }

  #joined(): Buffer {
    const [first] = this.#pending;
    if (first !== undefined && this.#pending.length === 1) return first;
    const joined = Buffer.concat(this.#pending, this.#pendingBytes);
    this.#pending = [joined];
    return joined;
  }
}
