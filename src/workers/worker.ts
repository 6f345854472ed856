import { ErrorRate } from "./error-rate.ts";
import type { VllmMetrics } from "./vllm-metrics.ts";

/** A request that was given to a worker and has not ended. */
export interface Reservation {
  readonly worker: Worker;
  readonly model: string;
  readonly uncachedTokens: number;
  /** When its prefill should be over, for answers whose first token nobody sees. */
  readonly prefillEndsMs: number;
  phase: "prefill" | "decode" | "ended";
}

/** Prompt tokens that vLLM prefills in one step by default; prompts within it are being prefilled, not queued. */
const STEP_TOKEN_BUDGET = 2048;
/** A scrape older than this says nothing about the present. */
const STALE_AFTER_MS = 5000;

/** One vLLM server: what it serves, how it is, and what we ourselves have in flight on it. Owned by `WorkerRegistry`. */
export class Worker {
  /** `ip:port`, as Envoy knows it. */
  readonly address: string;
  readonly name: string;
  readonly pool: string;
  /** For label expressions. */
  labels: Readonly<Record<string, string>> = {};
  readonly errors = new ErrorRate();
  healthy = false;
  /** Why it is not healthy, in words. */
  reason = "not checked yet";
  /** Model name to context length. */
  models: ReadonlyMap<string, { maxModelLen?: number }> = new Map();
  #metrics: VllmMetrics | undefined;
  #scrapedAtMs = Number.NEGATIVE_INFINITY;
  /** Sequences that run at once, once a queue has shown it. */
  #slots = Number.POSITIVE_INFINITY;
  readonly #inFlight = new Set<Reservation>();
  #queuedTokens = 0;
  #decoding = 0;

  constructor(address: string, name: string, pool: string) {
    this.address = address;
    this.name = name;
    this.pool = pool;
  }

  get metrics(): VllmMetrics | undefined {
    return this.#metrics;
  }

  /** Uncached prompt tokens of our requests that have no first token yet. */
  get queuedTokens(): number {
    return this.#queuedTokens;
  }

  get decoding(): number {
    return this.#decoding;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Takes a scrape; true if the worker's process is another one than before. */
  update(metrics: VllmMetrics, nowMs: number): boolean {
    const previous = this.#metrics;
    this.#metrics = metrics;
    this.#scrapedAtMs = nowMs;
    // One scrape with a queue may have caught a request on its way in; two in a row show that the slots are taken.
    const queued = metrics.waiting > 0 && previous !== undefined && previous.waiting > 0;
    if (queued) this.#slots = Math.max(metrics.running, previous.running, 1);
    else if (metrics.running > this.#slots) this.#slots = Number.POSITIVE_INFINITY;
    return (
      previous?.createdAt !== undefined && metrics.createdAt !== undefined && previous.createdAt !== metrics.createdAt
    );
  }

  /** KV-cache usage from 0 to 1; undefined if no fresh scrape tells. */
  kvCacheUsage(nowMs: number): number | undefined {
    return this.#fresh(nowMs) ? this.#metrics?.kvCacheUsage : undefined;
  }

  runningPrompts(nowMs: number): number {
    return Math.max(this.#decoding, this.#fresh(nowMs) ? (this.#metrics?.running ?? 0) : 0);
  }

  /**
   * Prompts that wait for their prefill to begin: what the worker last said, or more if we know of more. Of our own
   * requests without a first token, those that fit one step's budget and the free slots are taken to be in prefill.
   */
  queuedPrompts(nowMs: number): number {
    const withoutSlot = Math.max(0, this.#inFlight.size - this.#slots);
    let prefilling = 0;
    let waiting = 0;
    let tokens = 0;
    const slots = this.#slots - this.#decoding;
    for (const reservation of this.#inFlight) {
      if (reservation.phase !== "prefill") continue;
      tokens += reservation.uncachedTokens;
      if (prefilling === 0 ? slots >= 1 : tokens <= STEP_TOKEN_BUDGET && prefilling < slots) prefilling++;
      else waiting++;
    }
    return Math.max(waiting, withoutSlot, this.#fresh(nowMs) ? (this.#metrics?.waiting ?? 0) : 0);
  }

  /** Sequences that run at once; infinite until a queue has shown it. */
  get slots(): number {
    return this.#slots;
  }

  /** Requests, a new one included, for which the worker would have no sequence slot. */
  waitingForSlot(): number {
    return Number.isFinite(this.#slots) ? Math.max(0, this.#inFlight.size + 1 - this.#slots) : 0;
  }

  /** @param prefillEndsMs when to take its prefill for done if `prefillDone` is not called before */
  reserve(model: string, uncachedTokens: number, prefillEndsMs = Number.POSITIVE_INFINITY): Reservation {
    const reservation: Reservation = { worker: this, model, uncachedTokens, prefillEndsMs, phase: "prefill" };
    this.#inFlight.add(reservation);
    this.#queuedTokens += uncachedTokens;
    return reservation;
  }

  /** Takes prefills for done whose time is over. To be called before the load is read. */
  advance(nowMs: number): void {
    for (const reservation of this.#inFlight) if (reservation.prefillEndsMs <= nowMs) this.prefillDone(reservation);
  }

  /** The first token came: its prefill weighs on nobody any more. */
  prefillDone(reservation: Reservation): void {
    if (reservation.phase !== "prefill" || !this.#inFlight.has(reservation)) return;
    reservation.phase = "decode";
    this.#queuedTokens -= reservation.uncachedTokens;
    this.#decoding++;
  }

  /** Ends a reservation, however often it is called. */
  release(reservation: Reservation): void {
    if (!this.#inFlight.delete(reservation)) return;
    if (reservation.phase === "prefill") this.#queuedTokens -= reservation.uncachedTokens;
    else this.#decoding--;
    reservation.phase = "ended";
  }

  #fresh(nowMs: number): boolean {
    return nowMs - this.#scrapedAtMs < STALE_AFTER_MS;
  }
}
