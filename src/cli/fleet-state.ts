import type { Fleet } from "../handler/fleet.ts";
import type { WorkerGauges } from "../telemetry/metrics.ts";

/** What the live state shows of a worker. */
export interface WorkerState {
  name: string;
  address: string;
  pool: string;
  labels: Readonly<Record<string, string>>;
  healthy: boolean;
  reason: string;
  models: string[];
  queuedPrompts: number | undefined;
  runningPrompts: number | undefined;
  inFlight: number;
  queuedTokens: number;
  kvCacheUsage: number | null;
  errorRate: number;
  believedCachedTokens: number;
  cacheCapacityTokens: number;
}

export function fleetState(fleet: Fleet, nowMs: number): { workers: WorkerState[] } {
  const workers = [...fleet.workers.all()].map((worker) => ({
    name: worker.name,
    address: worker.address,
    pool: worker.pool,
    labels: worker.labels,
    healthy: worker.healthy,
    reason: worker.reason,
    models: [...worker.models.keys()],
    queuedPrompts: worker.queuedPrompts(nowMs),
    runningPrompts: worker.runningPrompts(nowMs),
    inFlight: worker.inFlight,
    queuedTokens: worker.queuedTokens,
    kvCacheUsage: worker.kvCacheUsage(nowMs) ?? null,
    errorRate: worker.errors.rate(nowMs),
    believedCachedTokens: Math.round(fleet.cacheOf(worker).usedTokens),
    cacheCapacityTokens: fleet.cacheOf(worker).capacityTokens,
  }));
  return { workers };
}

export function* fleetGauges(fleet: Fleet, nowMs: number): Generator<WorkerGauges> {
  for (const worker of fleet.workers.all()) {
    yield {
      name: worker.name,
      pool: worker.pool,
      healthy: worker.healthy,
      queued: worker.queuedPrompts(nowMs),
      running: worker.runningPrompts(nowMs),
      inFlight: worker.inFlight,
      kvCacheUsage: worker.kvCacheUsage(nowMs),
    };
  }
}
