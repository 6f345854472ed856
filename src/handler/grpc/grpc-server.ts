import http2 from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { FrameReader, frame } from "./framing.ts";

/** One call. The service answers with `send` and ends with `end`; `onMessage` and `onClose` are set by the service. */
export interface GrpcCall {
  /** The connection that the call came by: calls of one Envoy worker share it. */
  readonly connection: object;
  metadata(name: string): string | undefined;
  /** Sends messages in order, in one write. */
  send(...messages: Uint8Array[]): void;
  /** Ends the call; 0 is OK. */
  end(status?: number, message?: string): void;
  onMessage: (message: Buffer) => void;
  /** The client sends no more messages. */
  onHalfClose: () => void;
  /** The call is over, however it ended. Called once. */
  onClose: () => void;
}

export type GrpcMethod = (call: GrpcCall) => void;

const UNIMPLEMENTED = 12;
const INTERNAL = 13;
const WINDOW_BYTES = 1 << 20;

/**
 * gRPC over node:http2. Envoy resets every ext_proc stream when it is done with it; Node's guard against reset floods
 * would answer that with GOAWAY and fail requests, and @grpc/grpc-js cannot raise the guard's limits (Node >= 24 can).
 */
export class GrpcServer {
  readonly #server: http2.Http2Server;
  readonly #methods: ReadonlyMap<string, GrpcMethod>;
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  readonly #maxMessageBytes: number;
  readonly #onConnectionClosed: (connection: object) => void;

  /** @param methods by path, e.g. `/envoy.service.ext_proc.v3.ExternalProcessor/Process` */
  constructor(
    methods: Record<string, GrpcMethod>,
    maxMessageBytes: number,
    onConnectionClosed: (connection: object) => void = () => {},
  ) {
    this.#methods = new Map(Object.entries(methods));
    this.#maxMessageBytes = maxMessageBytes;
    this.#onConnectionClosed = onConnectionClosed;
    this.#server = http2.createServer({
      streamResetBurst: 2 ** 30,
      streamResetRate: 2 ** 30,
      settings: { initialWindowSize: WINDOW_BYTES, maxConcurrentStreams: 65_535 },
    });
    this.#server.on("session", (session) => this.#open(session));
    this.#server.on("stream", (stream, headers) => this.#serve(stream, headers));
    this.#server.on("connection", (socket: Socket) => socket.setNoDelay(true));
  }

  /** Resolves with the port once it listens. */
  listen(port: number, host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => resolve((this.#server.address() as AddressInfo).port));
    });
  }

  /** Stops taking calls, lets running ones finish, and cuts what is left after the grace. */
  async close(graceMs = 5000): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const session of this.#sessions) session.close();
    const timer = setTimeout(() => {
      for (const session of this.#sessions) session.destroy();
    }, graceMs);
    await closed;
    clearTimeout(timer);
  }

  #open(session: http2.ServerHttp2Session): void {
    this.#sessions.add(session);
    session.setLocalWindowSize(16 * WINDOW_BYTES);
    session.on("error", () => session.destroy());
    session.on("close", () => {
      this.#sessions.delete(session);
      this.#onConnectionClosed(session);
    });
  }

  #serve(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): void {
    const method = this.#methods.get(headers[":path"] ?? "");
    if (method === undefined) {
      stream.on("error", () => {});
      stream.respond(
        { ":status": 200, "content-type": "application/grpc", "grpc-status": String(UNIMPLEMENTED) },
        { endStream: true },
      );
      return;
    }
    const call = new Http2Call(stream, headers, this.#maxMessageBytes);
    method(call);
  }
}

class Http2Call implements GrpcCall {
  readonly connection: object;
  onMessage: (message: Buffer) => void = () => {};
  onHalfClose: () => void = () => {};
  onClose: () => void = () => {};
  readonly #stream: http2.ServerHttp2Stream;
  readonly #headers: http2.IncomingHttpHeaders;
  #trailers: Record<string, string> = { "grpc-status": "0" };
  #ended = false;

  constructor(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, maxMessageBytes: number) {
    this.#stream = stream;
    this.#headers = headers;
    this.connection = stream.session ?? stream;
    const reader = new FrameReader(maxMessageBytes);
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(this.#trailers));
    stream.on("data", (chunk: Buffer) => {
      const error = reader.push(chunk, (message) => this.onMessage(message));
      if (error !== undefined) this.end(INTERNAL, error);
    });
    stream.on("end", () => this.onHalfClose());
    // A reset by the client is how Envoy ends every call; what matters to the service is that it is over.
    stream.on("error", () => {});
    stream.on("close", () => {
      this.#ended = true;
      this.onClose();
    });
  }

  metadata(name: string): string | undefined {
    const value = this.#headers[name];
    return Array.isArray(value) ? value[0] : value;
  }

  send(...messages: Uint8Array[]): void {
    if (!this.#ended && !this.#stream.destroyed) this.#stream.write(frame(messages));
  }

  end(status = 0, message = ""): void {
    if (this.#ended || this.#stream.destroyed) return;
    this.#ended = true;
    this.#trailers = {
      "grpc-status": String(status),
      ...(message === "" ? {} : { "grpc-message": encodeURIComponent(message) }),
    };
    this.#stream.end();
  }
}
