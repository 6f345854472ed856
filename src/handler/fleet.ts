import { TokenRatio } from "../kvcache/token-ratio.ts";
import { WorkerCache } from "../kvcache/worker-cache.ts";
import { LatencyModel } from "../latency/latency-model.ts";
import type { Provider } from "../providers/provider.ts";
import { ProviderState } from "../providers/provider-state.ts";
import type { Worker } from "../workers/worker.ts";
import { type HttpGet, type MonitorSettings, WorkerMonitor } from "../workers/worker-monitor.ts";
import { type WorkerAddress, WorkerRegistry } from "../workers/worker-registry.ts";

/** The local workers and all that is known of them: health, load, caches, speed. Lives as long as the process. */
export class Fleet {
  readonly workers = new WorkerRegistry();
  readonly latency = new LatencyModel();
  readonly #get: HttpGet;
  readonly #now: () => number;
  readonly #settings: MonitorSettings;
  readonly #log: (message: string, fields: object) => void;
  readonly #monitors = new Map<Worker, WorkerMonitor>();
  readonly #caches = new Map<Worker, WorkerCache>();
  readonly #ratios = new Map<string, TokenRatio>();
  readonly #providers = new Map<string, ProviderState>();

  constructor(
    get: HttpGet,
    now: () => number,
    settings: MonitorSettings,
    log: (message: string, fields: object) => void,
  ) {
    this.#get = get;
    this.#now = now;
    this.#settings = settings;
    this.#log = log;
  }

  /** Makes the fleet the given workers. Resolves when each new one has been checked once. */
  async replace(addresses: readonly WorkerAddress[]): Promise<void> {
    const { added, removed } = this.workers.replace(addresses);
    for (const worker of removed) {
      this.#monitors.get(worker)?.stop();
      this.#monitors.delete(worker);
      this.#caches.delete(worker);
      this.latency.forget(worker.address);
    }
    await Promise.all(added.map((worker) => this.#watch(worker)));
  }

  /** Whether any worker has told what it serves. */
  servesModels(): boolean {
    for (const worker of this.workers.all()) if (worker.models.size > 0) return true;
    return false;
  }

  stop(): void {
    for (const monitor of this.#monitors.values()) monitor.stop();
  }

  cacheOf(worker: Worker): WorkerCache {
    let cache = this.#caches.get(worker);
    if (cache === undefined) {
      cache = new WorkerCache();
      this.#caches.set(worker, cache);
    }
    return cache;
  }

  ratioOf(model: string): TokenRatio {
    let ratio = this.#ratios.get(model);
    if (ratio === undefined) {
      ratio = new TokenRatio();
      this.#ratios.set(model, ratio);
    }
    return ratio;
  }

  /** What is known of a provider; it stays known through changes of configuration. */
  stateOf(provider: Provider): ProviderState {
    let state = this.#providers.get(provider.key);
    if (state === undefined) {
      state = new ProviderState();
      this.#providers.set(provider.key, state);
    }
    return state;
  }

  /** Traffic could not be served by this worker: it is left at once, until a check finds it well. */
  suspect(worker: Worker, reason: string): void {
    this.#monitors.get(worker)?.reportFailure(reason);
  }

  /** Something may be wrong with a worker: look at once. */
  recheck(worker: Worker): void {
    this.#monitors.get(worker)?.checkNow();
  }

  async #watch(worker: Worker): Promise<void> {
    const monitor = new WorkerMonitor(
      worker,
      this.#get,
      {
        restarted: () => {
          this.cacheOf(worker).clear();
          this.#log("worker restarted", { worker: worker.name });
        },
        scraped: () => this.#configureCache(worker),
        gone: () => this.cacheOf(worker).clear(),
        healthChanged: () => {
          this.#log(worker.healthy ? "worker healthy" : "worker unhealthy", {
            worker: worker.name,
            reason: worker.reason,
          });
        },
      },
      this.#now,
      this.#settings,
    );
    this.#monitors.set(worker, monitor);
    await monitor.check();
    monitor.start();
  }

  #configureCache(worker: Worker): void {
    const { capacityTokens, blockTokens } = worker.metrics ?? {};
    if (capacityTokens !== undefined && blockTokens !== undefined)
      this.cacheOf(worker).configure(capacityTokens, blockTokens);
  }
}
