import type { Flight } from "./flight.ts";

/** How long an access-log entry may take once Envoy has nothing more to do with a request. */
const LOG_GRACE_MS = 10_000;
/** A flight of which nothing was heard for so long will never be logged: its Envoy is gone. */
const MAX_FLIGHT_MS = 3_600_000;
const SWEEP_EVERY_MS = 5_000;

/** The requests in flight, so that whoever hears of an end finds the beginning. No flight stays for ever. */
export class FlightTable {
  readonly #now: () => number;
  readonly #flights = new Map<string, { flight: Flight; connection: object; deadlineMs: number }>();
  #sweptMs = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  get size(): number {
    return this.#flights.size;
  }

  /** @param connection the Envoy connection by which the request came */
  add(flight: Flight, connection: object): void {
    const nowMs = this.#now();
    this.#flights.set(flight.decision.id, { flight, connection, deadlineMs: nowMs + MAX_FLIGHT_MS });
    if (nowMs - this.#sweptMs > SWEEP_EVERY_MS) this.sweep();
  }

  find(id: string): Flight | undefined {
    return this.#flights.get(id)?.flight;
  }

  remove(flight: Flight): void {
    this.#flights.delete(flight.decision.id);
  }

  /** The request is over for Envoy; its log entry should come soon. */
  expectLog(flight: Flight): void {
    const entry = this.#flights.get(flight.decision.id);
    if (entry !== undefined) entry.deadlineMs = Math.min(entry.deadlineMs, this.#now() + LOG_GRACE_MS);
  }

  /** An Envoy connection closed. Its requests may go on, but if the proxy died they never will be logged. */
  connectionClosed(connection: object, graceMs = 60_000): void {
    for (const entry of this.#flights.values()) {
      if (entry.connection === connection) entry.deadlineMs = Math.min(entry.deadlineMs, this.#now() + graceMs);
    }
  }

  /** Ends what is past its deadline, as a client who left. */
  sweep(): void {
    const nowMs = this.#now();
    this.#sweptMs = nowMs;
    for (const [id, { flight, deadlineMs }] of this.#flights) {
      if (nowMs < deadlineMs) continue;
      this.#flights.delete(id);
      flight.end({ status: 0, usage: {}, clientGone: true, broken: false }, nowMs);
    }
  }
}
