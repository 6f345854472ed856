import { lookup } from "node:dns/promises";
import type { Logger } from "pino";
import { Agent, request } from "undici";
import type { PostJson } from "../classify/remote-tags.ts";
import { Fleet } from "../handler/fleet.ts";
import { InferenceHandler } from "../handler/handler.ts";
import { HandlerService } from "../handler/service.ts";
import type { HandlerSettings } from "../handler/settings.ts";
import type { SendCopy } from "../handler/shadow.ts";
import { addressOf, resolveEndpoints } from "../resources/resolve-endpoints.ts";
import { type ResourceStatus, statusesOf } from "../resources/resource-status.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import { AdminServer } from "../telemetry/admin-server.ts";
import { DecisionLog } from "../telemetry/decision-log.ts";
import { ExplanationSampler } from "../telemetry/explanation-sampler.ts";
import { Metrics, type WorkerGauges } from "../telemetry/metrics.ts";
import { RecentDecisions, recordToAll } from "../telemetry/recent-decisions.ts";
import type { Recorder } from "../telemetry/records.ts";
import { DEFAULT_MONITOR, type HttpGet } from "../workers/worker-monitor.ts";
import { explainQuery } from "./explain-query.ts";
import { fleetGauges, fleetState } from "./fleet-state.ts";

export interface HandlerProcessOptions extends HandlerSettings {
  snapshot: Snapshot;
  log: Logger;
  scrapeIntervalMs?: number;
  /** File of JSON lines that explained decisions are appended to. */
  decisionLog?: string;
  /** Share of decisions that are explained, 0 to 1; beside them a few each second are. */
  explainShare: number;
  /** Hears of every request, beside metrics and live state. */
  recorder?: Recorder;
}

/** Decisions a second that are explained whatever the share. */
const EXPLAINED_PER_SECOND = 5;
const COPY_TIMEOUT_MS = 600_000;

/** The inference handler with its surroundings, as `up` and `serve` run it. */
export class HandlerProcess {
  readonly fleet: Fleet;
  readonly handler: InferenceHandler;
  readonly service: HandlerService;
  readonly metrics: Metrics;
  readonly #recent = new RecentDecisions();
  readonly #log: Logger;
  readonly #agent = new Agent({ pipelining: 0, connections: 2 });
  /** For classifiers and copies, which must not wait behind scrapes. */
  readonly #callers = new Agent({ connections: 256 });
  readonly #decisionLog: DecisionLog | undefined;
  #statuses: readonly ResourceStatus[];
  #admin: AdminServer | undefined;
  #ready = false;

  constructor(options: HandlerProcessOptions) {
    const now = () => performance.now();
    this.#log = options.log;
    this.#statuses = statusesOf(options.snapshot);
    const monitor = {
      ...DEFAULT_MONITOR,
      ...(options.scrapeIntervalMs === undefined ? {} : { intervalMs: options.scrapeIntervalMs }),
    };
    this.fleet = new Fleet(this.#get, now, monitor, (message, fields) => this.#log.info(fields, message));
    this.metrics = new Metrics(
      () => this.#gauges(),
      () => this.#statuses,
    );
    if (options.decisionLog !== undefined) {
      this.#decisionLog = new DecisionLog(options.decisionLog, (error) =>
        this.#log.error({ err: error }, "the decision log cannot be written"),
      );
    }
    const recorders = [this.metrics, this.#recent, this.#decisionLog, options.recorder];
    const recorder = recordToAll(recorders.filter((one) => one !== undefined));
    const sampler = new ExplanationSampler(options.explainShare, EXPLAINED_PER_SECOND, now, Math.random);
    const surroundings = {
      now,
      epochMs: Date.now,
      random: Math.random,
      postJson: this.#postJson,
      sendCopy: this.#sendCopy,
      explains: () => sampler.next(),
    };
    this.handler = new InferenceHandler(options.snapshot, this.fleet, recorder, surroundings, options);
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
        pool.endpoints.map((endpoint) => ({
          address: addressOf(endpoint),
          name: endpoint.name,
          pool: pool.key,
          labels: endpoint.labels,
        })),
      ),
    );
    return snapshot;
  }

  /** What live state and metrics say of the declared objects. */
  setStatuses(statuses: readonly ResourceStatus[]): void {
    this.#statuses = statuses;
  }

  async serveAdmin(host: string, port: number): Promise<number> {
    this.#admin = new AdminServer({
      metrics: () => this.metrics.page(),
      state: () => ({
        ...fleetState(this.fleet, performance.now()),
        resources: this.#statuses,
        inFlight: this.service.flights.size,
        recent: this.#recent.list(),
      }),
      ready: () => this.#ready,
      decision: (id) => this.#decision(id),
      explain: (query, body) => explainQuery(this.handler, query, body),
    });
    return this.#admin.listen(host, port);
  }

  setReady(ready: boolean): void {
    this.#ready = ready;
  }

  /** After the decision log was moved away by whoever rotates it. */
  reopenLog(): void {
    this.#decisionLog?.reopen();
  }

  async close(graceMs: number): Promise<void> {
    this.#ready = false;
    this.fleet.stop();
    await this.service.close(graceMs);
    await this.#admin?.close();
    this.#decisionLog?.close();
    await Promise.all([this.#agent.close(), this.#callers.destroy()]);
  }

  #decision(id: string): unknown {
    const explanation = this.#recent.explanation(id);
    if (explanation === undefined) return undefined;
    const outcome = this.#recent.list().find(({ decision }) => decision.id === explanation.id)?.outcome;
    return { ...explanation, ...(outcome === undefined ? {} : { outcome }) };
  }

  readonly #get: HttpGet = async (url, timeoutMs) => {
    const response = await request(url, { dispatcher: this.#agent, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
    return { status: response.statusCode, body: await response.body.text() };
  };

  readonly #postJson: PostJson = async (url, body, timeoutMs) => {
    const response = await request(url, {
      method: "POST",
      dispatcher: this.#callers,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (response.statusCode === 200) return response.body.json();
    await response.body.dump();
    throw new Error(`the classifier answered ${response.statusCode}`);
  };

  readonly #sendCopy: SendCopy = async (address, path, body) => {
    const response = await request(`http://${address}${path}`, {
      method: "POST",
      dispatcher: this.#callers,
      headers: { "content-type": "application/json" },
      body,
      signal: AbortSignal.timeout(COPY_TIMEOUT_MS),
    });
    // Read to the end: the copy is to cost what the real request would.
    for await (const _ of response.body);
    return { status: response.statusCode };
  };

  #gauges(): Iterable<WorkerGauges> {
    return fleetGauges(this.fleet, performance.now());
  }
}
