import type { CacheLease } from "../kvcache/worker-cache.ts";
import type { Usage } from "../protocols/usage.ts";
import { costOf } from "../providers/cost.ts";
import type { DecisionRecord, Outcome, Recorder } from "../telemetry/records.ts";
import type { Reservation } from "../workers/worker.ts";
import type { BackendCandidate, LocalCandidate } from "./candidates.ts";
import { type Charges, expectedOutputTokens } from "./charges.ts";
import type { Fleet } from "./fleet.ts";

/** How a request ended, from whoever observed it. */
export interface FlightEnd {
  /** HTTP status, 0 if the client never got one. */
  status: number;
  usage: Usage;
  /** From the request's first byte to the first body byte from upstream, if observed more exactly than by `firstToken`. */
  ttftMs?: number;
  /** From the request's first byte to the response's last, if observed more exactly than by the call of `end`. */
  e2eMs?: number;
  clientGone: boolean;
  /** The upstream connection failed or broke. */
  broken: boolean;
}

/** A request from its pick to its end: holds the load it puts on a worker, and hands on what is learned from it. */
export class Flight {
  readonly decision: DecisionRecord;
  readonly startedMs: number;
  readonly #fleet: Fleet;
  readonly #recorder: Recorder;
  /** The chosen candidate and its fallbacks, in order. */
  readonly #candidates: readonly BackendCandidate[];
  readonly #charges: Charges;
  #serving: BackendCandidate;
  #reservation: Reservation | undefined;
  #lease: CacheLease | undefined;
  #ttftMs: number | undefined;
  #status = 0;
  #ended = false;

  constructor(
    decision: DecisionRecord,
    candidates: readonly [BackendCandidate, ...BackendCandidate[]],
    charges: Charges,
    fleet: Fleet,
    recorder: Recorder,
    nowMs: number,
  ) {
    this.#charges = charges;
    this.decision = decision;
    this.startedMs = nowMs;
    this.#fleet = fleet;
    this.#recorder = recorder;
    this.#candidates = candidates;
    this.#serving = candidates[0];
    this.#hold();
  }

  /** The name of who serves it, after fallbacks. */
  get servedBy(): string {
    return this.#serving.name;
  }

  /** What the client is told of its limits. */
  limitHeaders(): Record<string, string> {
    return this.#charges.headers();
  }

  /**
   * The response's headers came.
   * @param address who answered (`ip:port`); "none" when Envoy itself did, undefined when it does not tell
   */
  responseStarted(status: number, address: string | "none" | undefined): void {
    this.#status = status;
    if (this.#ended) return;
    if (address === "none") {
      for (const candidate of this.#candidates) this.#suspect(candidate, `no answer (${status})`);
    } else if (address !== undefined) this.#movedTo(address);
    else if (status >= 502 && this.#serving.type === "Local") this.#fleet.recheck(this.#serving.worker);
  }

  /** The first byte of the answer came. */
  firstToken(nowMs: number): void {
    if (this.#ended || this.#ttftMs !== undefined) return;
    this.#ttftMs = nowMs - this.startedMs;
    if (this.#reservation !== undefined) this.#reservation.worker.prefillDone(this.#reservation);
  }

  /** The response's last byte came: the worker is free of it, whatever is still to be learned. */
  responseDone(): void {
    if (this.#reservation !== undefined) this.#reservation.worker.release(this.#reservation);
  }

  /** Ends the flight, however often it is called: load is given back, models learn, the outcome is recorded. */
  end(end: FlightEnd, nowMs: number): void {
    if (this.#ended) return;
    const e2eMs = end.e2eMs ?? nowMs - this.startedMs;
    const status = end.status || this.#status;
    const ttftMs = end.ttftMs ?? this.#ttftMs;
    const served = status >= 200 && status < 300;
    const lease = this.#lease;
    this.#letGo(served, end.usage);
    this.#ended = true;
    if (served) this.#learn(end, lease, ttftMs, e2eMs);
    const outcome = outcomeOf(status, end);
    this.#settle(served, end.usage);
    if (outcome !== "client-gone") this.#rate(outcome === "server-error" || outcome === "broken", nowMs);
    this.#recorder.ended(this.decision, {
      status,
      outcome,
      servedBy: this.#serving.name,
      e2eMs,
      ...(ttftMs !== undefined && served ? { ttftMs } : {}),
      ...end.usage,
    });
  }

  /** Tokens that nobody reported are charged as estimated: silence must not be free. */
  #settle(served: boolean, usage: Usage): void {
    if (!served) {
      this.#charges.settle(undefined);
      return;
    }
    const { expected } = this.#charges;
    const { promptTokens = expected.promptTokens, cachedTokens = 0 } = usage;
    const reported = usage.promptTokens !== undefined || usage.outputTokens !== undefined;
    const outputTokens = usage.outputTokens ?? (reported ? 0 : expectedOutputTokens(expected.maxTokens));
    const price =
      this.#serving.type === "Provider" ? this.#serving.provider.priceOf(this.#serving.model) : this.#serving.price;
    this.#charges.settle({ promptTokens, outputTokens, cost: costOf(price, promptTokens, cachedTokens, outputTokens) });
  }

  /** Counts an outcome for or against whoever served. */
  #rate(failed: boolean, nowMs: number): void {
    if (this.#serving.type === "Local") this.#serving.worker.errors.record(failed, nowMs);
    else this.#fleet.stateOf(this.#serving.provider).record(failed, nowMs);
  }

  #hold(): void {
    const candidate = this.#serving;
    if (candidate.type !== "Local") return;
    // A whole answer comes as one: its prefill is over when it should be. Of a stream the first token is seen.
    const { model, load, worker, predictedTtftMs } = candidate;
    const prefillEndsMs = this.decision.stream ? undefined : this.startedMs + predictedTtftMs;
    this.#reservation = worker.reserve(model, load.uncachedTokens, prefillEndsMs);
    this.#lease = this.#fleet.cacheOf(candidate.worker).acquire(candidate.chain, candidate.promptTokens);
  }

  #letGo(reached: boolean, usage: Usage): void {
    if (this.#reservation !== undefined) this.#reservation.worker.release(this.#reservation);
    if (this.#lease !== undefined && this.#serving.type === "Local") {
      const { promptTokens, outputTokens } = usage;
      this.#fleet.cacheOf(this.#serving.worker).release(this.#lease, {
        reached,
        ...(promptTokens === undefined ? {} : { promptTokens }),
        ...(outputTokens === undefined ? {} : { outputTokens }),
      });
    }
    this.#reservation = undefined;
    this.#lease = undefined;
  }

  /** A fallback answered: the load is there now, and those before it are to be looked at. */
  #movedTo(address: string): void {
    const index = this.#candidates.findIndex((c) => (c.type === "Local" ? c.worker.address === address : false));
    // Provider addresses are not known beforehand: an unknown address means that the first provider in line answered.
    const at = index >= 0 ? index : this.#candidates.findIndex((c) => c.type === "Provider");
    const serving = this.#candidates[at];
    if (serving === undefined || serving === this.#serving) return;
    for (const passed of this.#candidates.slice(0, at)) this.#suspect(passed, "passed over for a fallback");
    this.#letGo(false, {});
    this.#serving = serving;
    this.#hold();
  }

  #suspect(candidate: BackendCandidate, reason: string): void {
    if (candidate.type === "Local") this.#fleet.suspect(candidate.worker, reason);
  }

  #learn(end: FlightEnd, lease: CacheLease | undefined, ttftMs: number | undefined, e2eMs: number): void {
    const { stream, model } = this.decision;
    const serving = this.#serving;
    // Only of a stream is the first body byte the first token.
    if (serving.type === "Provider") {
      const { provider } = serving;
      if (stream && ttftMs !== undefined)
        this.#fleet.stateOf(provider).learnTtft(model, provider.expectedTtftMs(model), ttftMs);
      return;
    }
    this.#learnPrompt(serving, lease, end.usage);
    if (end.clientGone || end.broken || !stream || ttftMs === undefined) return;
    const { promptTokens, cachedTokens } = end.usage;
    const known = promptTokens !== undefined && cachedTokens !== undefined;
    const load = known ? { ...serving.load, uncachedTokens: promptTokens - cachedTokens } : serving.load;
    this.#fleet.latency.learnTtft(serving.worker.address, model, load, ttftMs);
    const { outputTokens } = end.usage;
    if (outputTokens !== undefined) this.#fleet.latency.learnDecode(model, serving.load, outputTokens, e2eMs - ttftMs);
  }

  #learnPrompt(serving: LocalCandidate, lease: CacheLease | undefined, usage: Usage): void {
    const { promptTokens, cachedTokens } = usage;
    const { chain } = serving;
    if (promptTokens !== undefined && !chain.exactTokens && chain.imageTokens === 0) {
      this.#fleet.ratioOf(serving.model).learn(chain.characters, promptTokens);
    }
    if (cachedTokens !== undefined && lease !== undefined) {
      this.#fleet.cacheOf(serving.worker).correct(lease, serving.cachedTokens, cachedTokens);
    }
  }
}

function outcomeOf(status: number, end: FlightEnd): Outcome {
  if (end.clientGone) return "client-gone";
  if (end.broken) return "broken";
  if (status >= 500 || status === 0) return "server-error";
  return status >= 400 ? "client-error" : "ok";
}
