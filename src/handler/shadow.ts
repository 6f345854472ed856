import { type JsonBody, withModel } from "../protocols/json-body.ts";
import type { InferenceRequest } from "../protocols/protocol.ts";
import type { Recorder } from "../telemetry/records.ts";
import type { CandidateFinder, LocalCandidate } from "./candidates.ts";
import type { Fleet } from "./fleet.ts";

/** Posts a body to a worker and reads the answer to its end; rejects when there is none. */
export type SendCopy = (address: string, path: string, body: Buffer) => Promise<{ status: number }>;

/** Sends copies of requests to another model. Their load is known to the picker like any other. */
export class ShadowCopies {
  readonly #fleet: Fleet;
  readonly #recorder: Recorder;
  readonly #send: SendCopy;
  readonly #now: () => number;

  constructor(fleet: Fleet, recorder: Recorder, send: SendCopy, now: () => number) {
    this.#fleet = fleet;
    this.#recorder = recorder;
    this.#send = send;
    this.#now = now;
  }

  /** Copies a request to a local worker that has the model and nobody waiting; if there is none, nothing happens. */
  copy(rule: string, model: string, path: string, request: InferenceRequest, body: JsonBody, finder: CandidateFinder) {
    const idle = finder
      .of(model)
      .filter((candidate): candidate is LocalCandidate => candidate.type === "Local")
      .filter((candidate) => candidate.healthy && candidate.queuedPrompts === 0)
      .sort((a, b) => a.predictedTtftMs + a.harmMs - b.predictedTtftMs - b.harmMs)[0];
    if (idle === undefined) return;
    const bytes = model === request.model ? body.bytes : withModel(body, model);
    void this.#deliver(rule, idle, path, bytes);
  }

  async #deliver(rule: string, candidate: LocalCandidate, path: string, body: Buffer): Promise<void> {
    const { worker, model, chain, promptTokens, load, predictedTtftMs } = candidate;
    const startedMs = this.#now();
    const cache = this.#fleet.cacheOf(worker);
    const reservation = worker.reserve(model, load.uncachedTokens, startedMs + predictedTtftMs);
    const lease = cache.acquire(chain, promptTokens);
    let status = 0;
    try {
      ({ status } = await this.#send(worker.address, path, body));
    } catch {
      // A copy that failed is counted, and nobody waits for it.
    }
    worker.release(reservation);
    cache.release(lease, { reached: status >= 200 && status < 300 });
    this.#recorder.shadowed?.({ rule, model, worker: worker.name, status, e2eMs: this.#now() - startedMs });
  }
}
