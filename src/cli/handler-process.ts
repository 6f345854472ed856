import { lookup } from "node:dns/promises";
import type { Logger } from "pino";
import { Agent, request } from "undici";
import { Fleet } from "../handler/fleet.ts";
import { type HandlerSettings, InferenceHandler } from "../handler/handler.ts";
import { HandlerService } from "../handler/service.ts";
import { addressOf, resolveEndpoints } from "../resources/resolve-endpoints.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import { AdminServer } from "../telemetry/admin-server.ts";
import { Metrics, type WorkerGauges } from "../telemetry/metrics.ts";
import { RecentDecisions, recordToAll } from "../telemetry/recent-decisions.ts";
import type { Recorder } from "../telemetry/records.ts";
import { DEFAULT_MONITOR, type HttpGet } from "../workers/worker-monitor.ts";

export interface HandlerProcessOptions extends HandlerSettings {
  snapshot: Snapshot;
  log: Logger;
  scrapeIntervalMs?: number;
  /** Hears of every request, beside metrics and live state. */
  recorder?: Recorder;
}

/** The inference handler with its surroundings, as `up` and `serve` run it. */
export class HandlerProcess {
  readonly fleet: Fleet;
  readonly handler: InferenceHandler;
  readonly service: HandlerService;
  readonly metrics: Metrics;
  readonly #recent = new RecentDecisions();
  readonly #log: Logger;
  readonly #agent = new Agent({ pipelining: 0, connections: 2 });
  #admin: AdminServer | undefined;
  #ready = false;

  constructor(options: HandlerProcessOptions) {
    const now = () => performance.now();
    this.#log = options.log;
    const monitor = {
      ...DEFAULT_MONITOR,
      ...(options.scrapeIntervalMs === undefined ? {} : { intervalMs: options.scrapeIntervalMs }),
    };
    this.fleet = new Fleet(this.#get, now, monitor, (message, fields) => this.#log.info(fields, message));
    this.metrics = new Metrics(() => this.#gauges());
    const recorder = recordToAll([this.metrics, this.#recent, ...(options.recorder ? [options.recorder] : [])]);
    this.handler = new InferenceHandler(options.snapshot, this.fleet, recorder, now, options);
    this.service = new HandlerService(this.handler, now, (error) =>
      this.#log.error({ err: error }, "bug: a request could not be handled"),
    );
  }

  /** Makes workers and policies those of a snapshot. Returns it with names resolved, as the gateway needs it. */
  async apply(declared: Snapshot): Promise<Snapshot> {
    const find = async (host: string) => (await lookup(host)).address;
    const snapshot = await resolveEndpoints(declared, find, (endpoint, error) =>
      this.#log.error({ worker: endpoint.name, reason: error.message }, "worker's name cannot be resolved"),
    );
    this.handler.configure(snapshot);
    await this.fleet.replace(
      snapshot.pools.flatMap((pool) =>
        pool.endpoints.map((endpoint) => ({ address: addressOf(endpoint), name: endpoint.name, pool: pool.key })),
      ),
    );
    return snapshot;
  }

  async serveAdmin(host: string, port: number): Promise<number> {
    this.#admin = new AdminServer({
      metrics: () => this.metrics.page(),
      state: () => this.#state(),
      ready: () => this.#ready,
    });
    return this.#admin.listen(host, port);
  }

  setReady(ready: boolean): void {
    this.#ready = ready;
  }

  async close(graceMs: number): Promise<void> {
    this.#ready = false;
    this.fleet.stop();
    await this.service.close(graceMs);
    await this.#admin?.close();
    await this.#agent.close();
  }

  readonly #get: HttpGet = async (url, timeoutMs) => {
    const response = await request(url, { dispatcher: this.#agent, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
    return { status: response.statusCode, body: await response.body.text() };
  };

  *#gauges(): Generator<WorkerGauges> {
    const now = performance.now();
    for (const worker of this.fleet.workers.all()) {
      yield {
        name: worker.name,
        pool: worker.pool,
        healthy: worker.healthy,
        queued: worker.queuedPrompts(now),
        running: worker.runningPrompts(now),
        inFlight: worker.inFlight,
        kvCacheUsage: worker.kvCacheUsage(now),
      };
    }
  }

  #state() {
    const now = performance.now();
    return {
      workers: [...this.fleet.workers.all()].map((worker) => ({
        name: worker.name,
        address: worker.address,
        pool: worker.pool,
        healthy: worker.healthy,
        reason: worker.reason,
        models: [...worker.models.keys()],
        queuedPrompts: worker.queuedPrompts(now),
        runningPrompts: worker.runningPrompts(now),
        inFlight: worker.inFlight,
        queuedTokens: worker.queuedTokens,
        kvCacheUsage: worker.kvCacheUsage(now) ?? null,
        believedCachedTokens: Math.round(this.fleet.cacheOf(worker).usedTokens),
        cacheCapacityTokens: this.fleet.cacheOf(worker).capacityTokens,
      })),
      inFlight: this.service.flights.size,
      recent: this.#recent.list(),
    };
  }
}
