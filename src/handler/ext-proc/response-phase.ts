import { DESTINATION_ENDPOINT_SERVED, LB_NAMESPACE, type ObserveMode } from "../../api/wire.ts";
import { UsageReader } from "../../protocols/usage-reader.ts";
import type { Flight } from "../flight.ts";
import type { FlightTable } from "../flight-table.ts";
import type { GrpcCall } from "../grpc/grpc-server.ts";
import {
  attribute,
  BODY_MODE,
  bodyBytes,
  chunkReply,
  duplexReply,
  headersReply,
  metadataValue,
  type ProcessingRequest,
  readHeaders,
  trailersReply,
  type WireBody,
  type WireHeaders,
} from "./messages.ts";

/**
 * The response's side of one call. Two ways to learn how a request ends, with one interface to the flight: the access
 * log tells it (then this lets go after the first body chunk, and later chunks cost nothing), or the stream is read here.
 */
export class ResponsePhase {
  readonly #call: GrpcCall;
  readonly #flight: Flight;
  readonly #flights: FlightTable;
  readonly #bodyMode: number;
  readonly #detach: boolean;
  readonly #debugHeaders: boolean;
  /** Our own gateway always says who answered; others may not. */
  readonly #tellsAddress: boolean;
  readonly #now: () => number;
  #reader: UsageReader | undefined;
  #complete = false;

  constructor(
    call: GrpcCall,
    flight: Flight,
    flights: FlightTable,
    options: { bodyMode: number; observe: ObserveMode | undefined; debugHeaders: boolean },
    now: () => number,
  ) {
    this.#call = call;
    this.#flight = flight;
    this.#flights = flights;
    this.#bodyMode = options.bodyMode;
    // In full duplex Envoy forwards only what comes back from here: letting go would cut the response.
    this.#detach = options.observe === "access-log" && options.bodyMode !== BODY_MODE.fullDuplex;
    this.#debugHeaders = options.debugHeaders;
    this.#tellsAddress = options.observe !== undefined;
    this.#now = now;
  }

  headers(message: ProcessingRequest, wire: WireHeaders): void {
    const headers = readHeaders(wire);
    const status = Number(headers.get(":status") ?? 0);
    this.#flight.responseStarted(
      status,
      servedAddress(message) ?? (this.#tellsAddress && status >= 500 ? "none" : undefined),
    );
    const set = { ...this.#flight.limitHeaders(), ...(this.#debugHeaders ? debugHeaders(this.#flight) : {}) };
    const changes = Object.keys(set).length > 0 ? { set, remove: [] } : undefined;
    this.#call.send(headersReply("response_headers", changes));
    const sendsBody = this.#bodyMode !== BODY_MODE.none;
    if (wire.end_of_stream === true) this.#finish();
    else if (this.#detach && !sendsBody) this.#letGo();
    else if (!this.#detach) this.#reader = new UsageReader(headers.get("content-type") ?? "");
  }

  body(wire: WireBody): void {
    const bytes = bodyBytes(wire);
    if (bytes.length > 0) this.#flight.firstToken(this.#now());
    const end = wire.end_of_stream === true;
    this.#call.send(
      this.#bodyMode === BODY_MODE.fullDuplex ? duplexReply("response_body", bytes, end) : chunkReply("response_body"),
    );
    this.#reader?.push(bytes);
    if (end) this.#finish();
    else if (this.#detach && bytes.length > 0) this.#letGo();
  }

  trailers(): void {
    this.#call.send(trailersReply("response_trailers"));
    this.#finish();
  }

  /** The call is over. Before the response was complete, that is a client who left or a connection that broke. */
  closed(): void {
    if (this.#complete) return;
    if (this.#detach) this.#flights.expectLog(this.#flight);
    else this.#end({ clientGone: true });
  }

  #letGo(): void {
    this.#complete = true;
    this.#call.end();
  }

  #finish(): void {
    this.#complete = true;
    this.#flight.responseDone();
    if (this.#detach) this.#flights.expectLog(this.#flight);
    else this.#end({ clientGone: false });
    this.#call.end();
  }

  #end(how: { clientGone: boolean }): void {
    this.#flight.end({ status: 0, usage: this.#reader?.end() ?? {}, broken: false, ...how }, this.#now());
    this.#flights.remove(this.#flight);
  }
}

function servedAddress(message: ProcessingRequest): string | undefined {
  return (
    attribute(message, "upstream.address") ??
    metadataValue(message, LB_NAMESPACE, DESTINATION_ENDPOINT_SERVED)?.stringValue
  );
}

function debugHeaders(flight: Flight): Record<string, string> {
  const { rule, predictedTtftMs, predictedCachedTokens } = flight.decision;
  return {
    "x-kinference-worker": flight.servedBy,
    "x-kinference-rule": rule,
    "x-kinference-predicted-ttft-ms": predictedTtftMs.toFixed(1),
    "x-kinference-cached-tokens": String(predictedCachedTokens),
  };
}
