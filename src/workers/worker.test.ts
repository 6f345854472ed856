import { expect, test } from "vitest";
import { parseVllmMetrics } from "./vllm-metrics.ts";
import { Worker } from "./worker.ts";
import { type MonitorEvents, WorkerMonitor } from "./worker-monitor.ts";

const metrics = (running: number, waiting: number, createdAt = 1) => ({
  running,
  waiting,
  kvCacheUsage: 0.5,
  createdAt,
});

test("a reservation weighs as prefill, then as decode, then not at all, whatever is called twice", () => {
  const worker = new Worker("10.0.0.1:8000", "w", "pool");
  const [a, b] = [worker.reserve("m", 1000), worker.reserve("m", 500)];
  expect([worker.queuedTokens, worker.decoding, worker.inFlight]).toEqual([1500, 0, 2]);
  worker.prefillDone(a);
  worker.prefillDone(a);
  expect([worker.queuedTokens, worker.decoding, worker.inFlight]).toEqual([500, 1, 2]);
  worker.release(a);
  worker.release(a);
  worker.prefillDone(a);
  worker.release(b);
  expect([worker.queuedTokens, worker.decoding, worker.inFlight]).toEqual([0, 0, 0]);
});

test("queued prompts: those beyond one step's prefill, or what the worker says if that is more", () => {
  const worker = new Worker("10.0.0.1:8000", "w", "pool");
  for (let i = 0; i < 5; i++) worker.reserve("m", 500);
  expect(worker.queuedPrompts(0)).toBe(1);
  worker.reserve("m", 50_000);
  expect(worker.queuedPrompts(0)).toBe(2);
  worker.update(metrics(2, 7), 0);
  expect(worker.queuedPrompts(100)).toBe(7);
  // What was said long ago says nothing about now.
  expect(worker.queuedPrompts(60_000)).toBe(2);
});

test("the number of slots shows when the worker queues: then one running prompt more is one queued", () => {
  const worker = new Worker("10.0.0.1:8000", "w", "pool");
  worker.update(metrics(1, 1), 0);
  // One scrape alone may have caught a request on its way in.
  const early = [1, 2, 3].map(() => worker.reserve("m", 10));
  expect(worker.waitingForSlot()).toBe(0);
  for (const reservation of early) worker.release(reservation);
  worker.update(metrics(2, 1), 0);
  const held = [worker.reserve("m", 10), worker.reserve("m", 10)];
  for (const reservation of held) worker.prefillDone(reservation);
  worker.update(metrics(2, 0), 1);
  expect(worker.queuedPrompts(2)).toBe(0);
  for (let i = 1; i <= 3; i++) {
    worker.reserve("m", 10);
    expect(worker.queuedPrompts(2)).toBe(i);
  }
});

test("a prefill whose first token nobody sees is over when it should be", () => {
  const worker = new Worker("10.0.0.1:8000", "w", "pool");
  worker.reserve("m", 5000, 100);
  worker.reserve("m", 5000);
  worker.advance(99);
  expect([worker.queuedTokens, worker.queuedPrompts(99)]).toEqual([10_000, 1]);
  worker.advance(100);
  expect([worker.queuedTokens, worker.decoding, worker.queuedPrompts(100)]).toEqual([5000, 1, 0]);
});

test("reads a page of vLLM 0.32 and those of older versions; comments are no samples", () => {
  const page = `# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 3.0
vllm:num_requests_running{engine="1",model_name="tiny"} 1.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25
vllm:prompt_tokens_created{engine="0",model_name="tiny"} 1.7961191202917967e+09
vllm:cache_config_info{_block_size_resolved="True",block_size="32",engine="0",hash_block_size="None",num_gpu_blocks="256",num_gpu_blocks_override="256"} 1.0`;
  expect(parseVllmMetrics(page)).toEqual({
    running: 4,
    waiting: 2,
    kvCacheUsage: 0.25,
    createdAt: 1796119120.2917967,
    blockTokens: 32,
    capacityTokens: 255 * 32,
  });
  const old = "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\nvllm:gpu_cache_usage_perc 0.5\n";
  expect(parseVllmMetrics(old)).toEqual({ running: 1, waiting: 0, kvCacheUsage: 0.5 });
  expect(parseVllmMetrics("go_goroutines 5\n")).toBeUndefined();
  expect(parseVllmMetrics("")).toBeUndefined();
});

test("health: refused at once, silent after three checks, restarts noticed, back by itself", async () => {
  const worker = new Worker("10.0.0.1:8000", "w", "pool");
  const seen: string[] = [];
  const events: MonitorEvents = {
    restarted: () => seen.push("restarted"),
    gone: () => seen.push("gone"),
    scraped: () => {},
    healthChanged: (w) => seen.push(w.healthy ? "healthy" : `unhealthy: ${w.reason}`),
  };
  let mode: "well" | "silent" | "refused" | "sick" = "well";
  let createdAt = 1;
  const get = async (url: string) => {
    if (mode === "refused") throw Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
    if (mode === "silent") throw new Error("timed out");
    if (url.endsWith("/health")) return { status: mode === "sick" ? 503 : 200, body: "" };
    if (url.endsWith("/v1/models")) return { status: 200, body: '{"data":[{"id":"m","max_model_len":4096}]}' };
    return {
      status: 200,
      body: `vllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:prompt_tokens_created ${createdAt}\n`,
    };
  };
  const monitor = new WorkerMonitor(worker, get, events, () => 0);
  await monitor.check();
  expect(worker.models).toEqual(new Map([["m", { maxModelLen: 4096 }]]));
  mode = "silent";
  await monitor.check();
  await monitor.check();
  expect(worker.healthy).toBe(true);
  await monitor.check();
  mode = "well";
  createdAt = 2;
  await monitor.check();
  mode = "refused";
  await monitor.check();
  mode = "sick";
  await monitor.check();
  mode = "well";
  await monitor.check();
  monitor.stop();
  expect(seen).toEqual([
    "healthy",
    "unhealthy: timed out",
    "restarted",
    "healthy",
    "gone",
    "unhealthy: connection refused",
    "healthy",
  ]);
});
