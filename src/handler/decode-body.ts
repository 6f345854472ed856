import { promisify } from "node:util";
import { brotliDecompress, gunzip, zstdDecompress } from "node:zlib";
import type { Result } from "../protocols/protocol.ts";

const DECODERS: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>> = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
};

/**
 * The body without its content encoding, so that policy and worker read the same bytes. An encoding that we cannot read
 * is refused: it would slip past every policy. A body that grows beyond the limit is refused while it grows.
 */
export async function decodeBody(
  bytes: Buffer,
  encoding: string | undefined,
  maxBytes: number,
): Promise<Result<Buffer>> {
  const name = encoding?.trim().toLowerCase() ?? "";
  if (name === "" || name === "identity") return { ok: true, value: bytes };
  const decode = DECODERS[name];
  if (decode === undefined) {
    const message = `content-encoding ${JSON.stringify(encoding)} is not supported; use gzip, br, zstd or none`;
    return { ok: false, error: { status: 415, code: "unsupported_content_encoding", message } };
  }
  try {
    return { ok: true, value: await decode(bytes, { maxOutputLength: maxBytes }) };
  } catch (error) {
    if ((error as { code?: string }).code === "ERR_BUFFER_TOO_LARGE")
      return { ok: false, error: bodyTooLarge(maxBytes) };
    return {
      ok: false,
      error: { status: 400, code: "invalid_request", message: `the request body is not valid ${name}` },
    };
  }
}

export function bodyTooLarge(maxBytes: number) {
  return {
    status: 413,
    code: "request_too_large",
    message: `the request body is larger than the limit of ${maxBytes} bytes`,
  };
}
