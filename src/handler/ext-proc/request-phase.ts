import type { GrpcCall } from "../grpc/grpc-server.ts";
import type { Verdict } from "../handler.ts";
import { BODY_MODE, bufferedBodyReply, duplexReply, headersReply, immediateReply, trailersReply } from "./messages.ts";

/** Envoy's guidance is at most 64 KiB a message. */
export const MAX_PIECE_BYTES = 62_000;

/** A request as it stood when it was complete. */
export interface CompleteRequest {
  /** How Envoy sends the body. */
  bodyMode: number;
  /** The body's chunks as they came. */
  chunks: readonly Buffer[];
  /** There was no body at all: the headers ended the request. */
  headersOnly: boolean;
  /** Trailers ended the request, not the body. */
  hasTrailers: boolean;
}

/** Sends a verdict in the form that Envoy's body mode asks for. */
export function replyToRequest(call: GrpcCall, request: CompleteRequest, verdict: Verdict): void {
  if (verdict.kind === "answer") {
    call.send(immediateReply(verdict.status, verdict.headers, verdict.body, "kinference_answer"));
    return;
  }
  const { changes, metadata, body } = verdict;
  const replies: Uint8Array[] = [];
  if (request.bodyMode === BODY_MODE.buffered && !request.headersOnly)
    replies.push(bufferedBodyReply(changes, metadata, body));
  else {
    // The order of Envoy's filter is strict: headers first, then the pieces, the last one marked.
    replies.push(headersReply("request_headers", changes, metadata));
    if (!request.headersOnly)
      replies.push(...bodyReplies(body === undefined ? request.chunks : [body], !request.hasTrailers));
  }
  if (request.hasTrailers) replies.push(trailersReply("request_trailers"));
  call.send(...replies);
}

/** A body in pieces that Envoy takes; an empty one is one empty piece. */
function bodyReplies(chunks: readonly Buffer[], endOfStream: boolean): Uint8Array[] {
  const pieces = chunks.flatMap((chunk) => {
    const cut: Buffer[] = [];
    for (let at = 0; at < chunk.length; at += MAX_PIECE_BYTES) cut.push(chunk.subarray(at, at + MAX_PIECE_BYTES));
    return cut;
  });
  if (pieces.length === 0) pieces.push(Buffer.alloc(0));
  return pieces.map((piece, i) => duplexReply("request_body", piece, endOfStream && i === pieces.length - 1));
}
