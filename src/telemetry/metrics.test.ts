import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { Metrics } from "./metrics.ts";
import type { DecisionRecord } from "./records.ts";

const decision: DecisionRecord = {
  id: "1",
  at: "",
  tenant: "team",
  api: "chat",
  requestedModel: "m",
  model: "m",
  stream: true,
  rule: "p/r",
  backendType: "Local",
  backend: "w",
  fallbacks: [],
  tags: [],
  notes: [],
  promptTokens: 100,
  predictedCachedTokens: 64,
  predictedTtftMs: 50,
};

async function pageAfter(use: (metrics: Metrics) => void): Promise<string> {
  const metrics = new Metrics(
    () => [{ name: "w", pool: "p", healthy: true, queued: 1, running: 2, inFlight: 3, kvCacheUsage: 0.5 }],
    () => [{ kind: "InferencePolicy", namespace: "default", name: "p", accepted: false }],
  );
  use(metrics);
  return metrics.page();
}

const served = (metrics: Metrics) => {
  metrics.decided(decision);
  metrics.ended(decision, {
    status: 200,
    outcome: "ok",
    servedBy: "w",
    ttftMs: 40,
    e2eMs: 240,
    promptTokens: 100,
    cachedTokens: 80,
    outputTokens: 11,
  });
  metrics.refused({ tenant: "team", model: "m", rule: "p/r", status: 429, code: "overloaded" });
};

function sampleOf(page: string, series: string): number {
  const line = page.split("\n").find((one) => one.startsWith(`${series}{`));
  return Number(line?.slice(line.lastIndexOf(" ") + 1));
}

test("one streamed answer, in every metric that it belongs to", async () => {
  const page = await pageAfter(served);
  const expected: Record<string, number> = {
    kinference_time_to_first_token_seconds_sum: 0.04,
    // 200 ms after the first token, for the ten tokens after it.
    kinference_inter_token_latency_seconds_sum: 0.02,
    kinference_request_duration_seconds_sum: 0.24,
    kinference_input_tokens_total: 100,
    kinference_output_tokens_total: 11,
    kinference_request_input_tokens_sum: 100,
    kinference_request_output_tokens_sum: 11,
    kinference_cached_prompt_tokens_total: 80,
    kinference_uncached_prompt_tokens_total: 20,
    kinference_requests_total: 1,
    kinference_refusals_total: 1,
    kinference_decisions_total: 1,
    kinference_cached_tokens_prediction_error_sum: 16,
    kinference_ttft_prediction_error_seconds_sum: 0.01,
    kinference_worker_healthy: 1,
    kinference_worker_queued_prompts: 1,
    kinference_worker_running_prompts: 2,
    kinference_worker_in_flight: 3,
    kinference_worker_kv_cache_usage: 0.5,
    kinference_resource_accepted: 0,
  };
  expect(page).toMatch(/kinference_cached_tokens_prediction_error_count\{[^}]*direction="under"[^}]*\} 1/);
  expect(page).toMatch(/kinference_ttft_prediction_error_seconds_count\{[^}]*direction="over"[^}]*\} 1/);
  for (const [series, value] of Object.entries(expected)) expect(sampleOf(page, series), series).toBeCloseTo(value, 9);
});

test("what nobody reported is not counted as nothing", async () => {
  const page = await pageAfter((metrics) =>
    metrics.ended(decision, { status: 200, outcome: "ok", servedBy: "w", e2eMs: 1 }),
  );
  expect(sampleOf(page, "kinference_responses_without_usage_total")).toBe(1);
  expect(page).not.toContain("kinference_output_tokens_total{");
  expect(page).not.toContain("kinference_cached_tokens_prediction_error_count{");
});

test("alert rules and documentation speak of metrics that there are", async () => {
  const page = await pageAfter((metrics) => {
    served(metrics);
    metrics.ended(decision, { status: 200, outcome: "ok", servedBy: "other", e2eMs: 1 });
    metrics.shadowed({ rule: "p/r", model: "m", worker: "w", status: 200, e2eMs: 1 });
  });
  for (const file of ["deploy/prometheus/alerts.yaml", "docs/metrics.md"]) {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
    const names = new Set(text.match(/kinference_[a-z_]+[a-z]/g));
    expect(names.size).toBeGreaterThan(4);
    for (const name of names) expect(page, `${file}: ${name}`).toMatch(new RegExp(`^${name}(_count)?\\{`, "m"));
  }
});
