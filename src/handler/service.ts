import { ACCESS_LOG_METHOD, serveAccessLog } from "./access-log/access-log.ts";
import { EXT_PROC_METHOD } from "./ext-proc/messages.ts";
import { ExtProcSession } from "./ext-proc/session.ts";
import { FlightTable } from "./flight-table.ts";
import { GrpcServer } from "./grpc/grpc-server.ts";
import { HEALTH_METHOD, serveHealth } from "./grpc/health.ts";
import type { InferenceHandler } from "./handler.ts";

/** A message carries at most a buffered body, its headers and framing. */
const MESSAGE_OVERHEAD_BYTES = 1 << 20;

/** The handler's gRPC face: ext_proc in, access log in, health out. */
export class HandlerService {
  readonly flights: FlightTable;
  readonly #server: GrpcServer;
  readonly #sweeper: NodeJS.Timeout;
  #serving = true;

  constructor(handler: InferenceHandler, now: () => number, onBug: (error: unknown) => void) {
    this.flights = new FlightTable(now);
    this.#server = new GrpcServer(
      {
        [EXT_PROC_METHOD]: (call) => void new ExtProcSession(call, handler, this.flights, now, onBug),
        [ACCESS_LOG_METHOD]: (call) => serveAccessLog(call, this.flights, now),
        [HEALTH_METHOD]: (call) => serveHealth(call, () => this.#serving),
      },
      handler.settings.maxBodyBytes + MESSAGE_OVERHEAD_BYTES,
      (connection) => this.flights.connectionClosed(connection),
    );
    this.#sweeper = setInterval(() => this.flights.sweep(), 5000).unref();
  }

  /** Resolves with the port once it listens. */
  listen(host: string, port: number): Promise<number> {
    return this.#server.listen(port, host);
  }

  /** Drains: not ready any more, no new calls, running ones finish. */
  async close(graceMs = 5000): Promise<void> {
    this.#serving = false;
    clearInterval(this.#sweeper);
    await this.#server.close(graceMs);
  }
}
