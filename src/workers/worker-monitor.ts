import { parseVllmMetrics } from "./vllm-metrics.ts";
import type { Worker } from "./worker.ts";

/** GETs a page of a worker. Rejects when there is no answer in time; `refused` says that nothing listens there. */
export type HttpGet = (url: string, timeoutMs: number) => Promise<{ status: number; body: string }>;

export interface MonitorSettings {
  /** Between two scrapes of a healthy worker. */
  intervalMs: number;
  /** Between two checks of an unhealthy one. */
  retryMs: number;
  timeoutMs: number;
  /** Failed checks in a row before a worker that does not answer is left; a refused connection counts at once. */
  failureThreshold: number;
}

export const DEFAULT_MONITOR: MonitorSettings = { intervalMs: 500, retryMs: 250, timeoutMs: 2000, failureThreshold: 3 };
const MODELS_EVERY = 10;

export interface MonitorEvents {
  /** The worker's process is a new one. */
  restarted(worker: Worker): void;
  /** Nothing listens there: the process is no more. */
  gone(worker: Worker): void;
  scraped(worker: Worker): void;
  healthChanged(worker: Worker): void;
}

/** Watches one worker until stopped: health, models, metrics, one small request after another. */
export class WorkerMonitor {
  readonly #worker: Worker;
  readonly #get: HttpGet;
  readonly #settings: MonitorSettings;
  readonly #events: MonitorEvents;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #checking = false;
  #failures = 0;
  #checks = 0;

  constructor(
    worker: Worker,
    get: HttpGet,
    events: MonitorEvents,
    now: () => number,
    settings: MonitorSettings = DEFAULT_MONITOR,
  ) {
    this.#worker = worker;
    this.#get = get;
    this.#events = events;
    this.#now = now;
    this.#settings = settings;
  }

  start(): void {
    void this.#run();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** Traffic found the worker dead: leave it now and look at once. */
  reportFailure(reason: string): void {
    if (!this.#worker.healthy || this.#stopped) return;
    this.#setHealth(false, reason);
    this.checkNow();
  }

  /** Something may be wrong with the worker: look at once, not only when it is due. */
  checkNow(): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    void this.#run();
  }

  async #run(): Promise<void> {
    if (this.#checking) return;
    this.#checking = true;
    await this.check();
    this.#checking = false;
    if (this.#stopped) return;
    const { intervalMs, retryMs } = this.#settings;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#run(), this.#worker.healthy ? intervalMs : retryMs);
  }

  /** One round. Never rejects. */
  async check(): Promise<void> {
    try {
      const health = await this.#fetch("/health");
      if (health.status !== 200) throw new Error(`/health answered ${health.status}`);
      if (!this.#worker.healthy || this.#checks % MODELS_EVERY === 0) await this.#readModels();
      await this.#scrape();
      this.#checks++;
      this.#failures = 0;
      this.#setHealth(true, "");
    } catch (error) {
      this.#failures++;
      const refused = isRefused(error);
      if (refused || this.#failures >= this.#settings.failureThreshold || !this.#worker.healthy) {
        if (refused) this.#events.gone(this.#worker);
        this.#setHealth(false, refused ? "connection refused" : (error as Error).message);
      }
    }
  }

  #fetch(path: string): Promise<{ status: number; body: string }> {
    return this.#get(`http://${this.#worker.address}${path}`, this.#settings.timeoutMs);
  }

  async #readModels(): Promise<void> {
    const response = await this.#fetch("/v1/models");
    const list: unknown = response.status === 200 ? JSON.parse(response.body) : undefined;
    const data = (list as { data?: unknown } | undefined)?.data;
    if (!Array.isArray(data)) throw new Error(`/v1/models answered ${response.status} without a list of models`);
    const models = new Map<string, { maxModelLen?: number }>();
    for (const entry of data as { id?: unknown; max_model_len?: unknown }[]) {
      if (typeof entry?.id !== "string") continue;
      models.set(entry.id, typeof entry.max_model_len === "number" ? { maxModelLen: entry.max_model_len } : {});
    }
    this.#worker.models = models;
  }

  /** Metrics are worth having but nothing to be left for: a worker without them is judged by our own load. */
  async #scrape(): Promise<void> {
    const response = await this.#fetch("/metrics");
    const metrics = response.status === 200 ? parseVllmMetrics(response.body) : undefined;
    if (metrics === undefined) return;
    if (this.#worker.update(metrics, this.#now())) this.#events.restarted(this.#worker);
    this.#events.scraped(this.#worker);
  }

  #setHealth(healthy: boolean, reason: string): void {
    if (this.#stopped) return;
    this.#worker.reason = reason;
    if (this.#worker.healthy === healthy) return;
    this.#worker.healthy = healthy;
    this.#events.healthChanged(this.#worker);
  }
}

function isRefused(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  return code === "ECONNREFUSED" || cause?.code === "ECONNREFUSED";
}
