import { bodyTooLarge } from "../decode-body.ts";
import type { Flight } from "../flight.ts";
import type { FlightTable } from "../flight-table.ts";
import type { GrpcCall } from "../grpc/grpc-server.ts";
import type { InferenceHandler, Verdict } from "../handler.ts";
import type { RequestHead } from "../request-head.ts";
import {
  BODY_MODE,
  bodyBytes,
  decodeRequest,
  duplexReply,
  headersReply,
  immediateReply,
  type ProcessingRequest,
  trailersReply,
  type WireBody,
  type WireHeaders,
} from "./messages.ts";
import { readHead } from "./read-head.ts";
import { replyToRequest } from "./request-phase.ts";
import { ResponsePhase } from "./response-phase.ts";

const INVALID_ARGUMENT = 3;

/** One request of Envoy's, from its headers to wherever Envoy or we let go of it. */
export class ExtProcSession {
  readonly #call: GrpcCall;
  readonly #handler: InferenceHandler;
  readonly #flights: FlightTable;
  readonly #now: () => number;
  readonly #onBug: (error: unknown) => void;
  #head: RequestHead | undefined;
  #startedMs = 0;
  #requestBodyMode: number = BODY_MODE.fullDuplex;
  #responseBodyMode: number = BODY_MODE.fullDuplex;
  #chunks: Buffer[] = [];
  #bodyBytes = 0;
  #deciding = false;
  #closed = false;
  #flight: Flight | undefined;
  #response: ResponsePhase | undefined;

  constructor(
    call: GrpcCall,
    handler: InferenceHandler,
    flights: FlightTable,
    now: () => number,
    onBug: (error: unknown) => void,
  ) {
    this.#call = call;
    this.#handler = handler;
    this.#flights = flights;
    this.#now = now;
    this.#onBug = onBug;
    call.onMessage = (bytes) => this.#receive(bytes);
    call.onHalfClose = () => this.#halfClosed();
    call.onClose = () => this.#close();
  }

  #receive(bytes: Buffer): void {
    if (this.#closed) return;
    let message: ProcessingRequest;
    try {
      message = decodeRequest(bytes);
    } catch {
      this.#call.end(INVALID_ARGUMENT, "not a ProcessingRequest");
      return;
    }
    try {
      this.#dispatch(message);
    } catch (error) {
      this.#fail(error);
    }
  }

  #dispatch(message: ProcessingRequest): void {
    if (message.request_headers) this.#requestHeaders(message, message.request_headers);
    else if (message.request_body) this.#requestBody(message.request_body);
    else if (message.request_trailers) this.#decide({ headersOnly: false, hasTrailers: true });
    else if (message.response_headers) this.#responseHeaders(message, message.response_headers);
    else if (message.response_body) this.#responseBody(message.response_body);
    else if (message.response_trailers) this.#responseTrailers();
  }

  #requestHeaders(message: ProcessingRequest, wire: WireHeaders): void {
    this.#startedMs = this.#now();
    this.#head = readHead(this.#call, message, wire);
    this.#requestBodyMode = message.protocol_config?.request_body_mode ?? BODY_MODE.fullDuplex;
    this.#responseBodyMode = message.protocol_config?.response_body_mode ?? BODY_MODE.fullDuplex;
    if (this.#requestBodyMode !== BODY_MODE.fullDuplex && this.#requestBodyMode !== BODY_MODE.buffered) {
      const message = "ext_proc must be configured with request_body_mode FULL_DUPLEX_STREAMED or BUFFERED";
      this.#answer(this.#handler.refuse(this.#head, { status: 500, code: "misconfigured_gateway", message }));
    } else if (wire.end_of_stream === true) this.#decide({ headersOnly: true, hasTrailers: false });
    // In full duplex the reply to the headers waits for the whole body; in buffered mode Envoy waits for it.
    else if (this.#requestBodyMode === BODY_MODE.buffered) this.#call.send(headersReply("request_headers"));
  }

  #requestBody(wire: WireBody): void {
    if (this.#deciding || this.#head === undefined) return;
    const bytes = bodyBytes(wire);
    this.#bodyBytes += bytes.length;
    const { maxBodyBytes } = this.#handler.settings;
    if (this.#bodyBytes > maxBodyBytes) {
      this.#chunks = [];
      this.#answer(this.#handler.refuse(this.#head, bodyTooLarge(maxBodyBytes)));
      return;
    }
    if (bytes.length > 0) this.#chunks.push(bytes);
    if (wire.end_of_stream === true) this.#decide({ headersOnly: false, hasTrailers: false });
  }

  #decide(ending: { headersOnly: boolean; hasTrailers: boolean }): void {
    const head = this.#head;
    if (this.#deciding || head === undefined) return;
    this.#deciding = true;
    const chunks = this.#chunks;
    this.#chunks = [];
    const [only] = chunks;
    const whole = only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks, this.#bodyBytes);
    this.#handler
      .decide(head, whole, this.#startedMs)
      .then((verdict) => this.#carryOut(head, verdict, { bodyMode: this.#requestBodyMode, chunks, ...ending }))
      .catch((error: unknown) => this.#fail(error));
  }

  #carryOut(head: RequestHead, verdict: Verdict, request: Parameters<typeof replyToRequest>[1]): void {
    if (verdict.kind !== "forward") {
      if (!this.#closed) replyToRequest(this.#call, request, verdict);
      return;
    }
    if (this.#closed) {
      // The client left while we decided: nothing was sent, so nothing must stay reserved.
      verdict.flight.end({ status: 0, usage: {}, clientGone: true, broken: false }, this.#now());
      return;
    }
    this.#flight = verdict.flight;
    this.#follow(head, verdict.flight);
    replyToRequest(this.#call, request, verdict);
  }

  #follow(head: RequestHead, flight: Flight): void {
    this.#flights.add(flight, this.#call.connection);
    const options = {
      bodyMode: this.#responseBodyMode,
      observe: head.observe,
      debugHeaders: this.#handler.settings.debugHeaders,
    };
    this.#response = new ResponsePhase(this.#call, flight, this.#flights, options, this.#now);
  }

  #responseHeaders(message: ProcessingRequest, wire: WireHeaders): void {
    if (this.#response !== undefined) this.#response.headers(message, wire);
    // A response without a flight (a passed path, an answer of Envoy's): nothing to observe.
    else {
      this.#call.send(headersReply("response_headers"));
      if (this.#responseBodyMode !== BODY_MODE.fullDuplex) this.#call.end();
    }
  }

  #responseBody(wire: WireBody): void {
    if (this.#response !== undefined) this.#response.body(wire);
    else this.#call.send(duplexReply("response_body", bodyBytes(wire), wire.end_of_stream === true));
  }

  #responseTrailers(): void {
    if (this.#response !== undefined) this.#response.trailers();
    else this.#call.send(trailersReply("response_trailers"));
  }

  #answer(verdict: Verdict): void {
    this.#deciding = true;
    if (verdict.kind === "answer")
      this.#call.send(immediateReply(verdict.status, verdict.headers, verdict.body, "kinference_answer"));
  }

  /** A bug of ours costs one request, and leaves nothing behind. */
  #fail(error: unknown): void {
    this.#onBug(error);
    this.#flight?.end({ status: 500, usage: {}, clientGone: false, broken: false }, this.#now());
    if (this.#head === undefined || this.#closed) return;
    this.#answer(
      this.#handler.refuse(this.#head, {
        status: 500,
        code: "internal_error",
        message: "The gateway failed to handle this request.",
      }),
    );
  }

  #halfClosed(): void {
    this.#close();
    this.#call.end();
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#response?.closed();
  }
}
