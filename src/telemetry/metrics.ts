import type { ObservableResult } from "@opentelemetry/api";
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import type { DecisionRecord, OutcomeRecord, Recorder, RefusalRecord, ShadowRecord } from "./records.ts";

/** What the gauges show of a worker. */
export interface WorkerGauges {
  name: string;
  pool: string;
  healthy: boolean;
  queued: number;
  running: number;
  inFlight: number;
  kvCacheUsage: number | undefined;
}

/** What the gauges show of a resource. */
export interface ResourceGauges {
  kind: string;
  namespace: string;
  name: string;
  accepted: boolean;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const TOKENS = [1, 8, 32, 128, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072];
const TOKEN_ERRORS = [0, 16, 64, 256, 1024, 4096, 16_384];
const SECOND_ERRORS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30];

/** All metrics, by OpenTelemetry. Units are in the names; tokens that nobody reported are in no count. */
export class Metrics implements Recorder {
  readonly #exporter = new PrometheusExporter({ preventServerStart: true });
  readonly #serializer = new PrometheusSerializer();
  readonly #provider: MeterProvider;
  readonly #ttft;
  readonly #itl;
  readonly #e2e;
  readonly #inputTokens;
  readonly #outputTokens;
  readonly #inputTokensPerRequest;
  readonly #outputTokensPerRequest;
  readonly #cachedTokens;
  readonly #uncachedTokens;
  readonly #requests;
  readonly #refusals;
  readonly #decisions;
  readonly #fallbacks;
  readonly #withoutUsage;
  readonly #cachedError;
  readonly #ttftError;
  readonly #shadows;

  constructor(workers: () => Iterable<WorkerGauges>, resources: () => Iterable<ResourceGauges> = () => []) {
    this.#provider = new MeterProvider({ readers: [this.#exporter] });
    const meter = this.#provider.getMeter("kinference");
    const histogram = (name: string, description: string, explicitBucketBoundaries: number[]) =>
      meter.createHistogram(`kinference_${name}`, { description, advice: { explicitBucketBoundaries } });
    const counter = (name: string, description: string) => meter.createCounter(`kinference_${name}`, { description });
    this.#ttft = histogram(
      "time_to_first_token_seconds",
      "From the request's first byte to the first token (streams)",
      SECONDS,
    );
    this.#itl = histogram(
      "inter_token_latency_seconds",
      "Mean time between output tokens of one request (streams)",
      SECONDS,
    );
    this.#e2e = histogram("request_duration_seconds", "From the request's first byte to the response's last", SECONDS);
    this.#inputTokens = counter("input_tokens", "Prompt tokens, cached ones included");
    this.#outputTokens = counter("output_tokens", "Generated tokens");
    this.#inputTokensPerRequest = histogram("request_input_tokens", "Prompt tokens of one request", TOKENS);
    this.#outputTokensPerRequest = histogram("request_output_tokens", "Generated tokens of one request", TOKENS);
    this.#cachedTokens = counter(
      "cached_prompt_tokens",
      "Prompt tokens that the worker reported as reused from its KV cache",
    );
    this.#uncachedTokens = counter("uncached_prompt_tokens", "Prompt tokens that the worker had to prefill");
    this.#requests = counter("requests", "Requests sent to a backend, by outcome");
    this.#refusals = counter("refusals", "Requests answered without a backend, by reason");
    this.#decisions = counter("decisions", "Decisions by rule and backend");
    this.#fallbacks = counter("fallbacks", "Requests served by another backend than the one chosen");
    this.#withoutUsage = counter("responses_without_usage", "Successful responses that reported no token usage");
    this.#cachedError = histogram(
      "cached_tokens_prediction_error",
      "Size of the difference between predicted and reported cached tokens",
      TOKEN_ERRORS,
    );
    this.#ttftError = histogram(
      "ttft_prediction_error_seconds",
      "Size of the difference between predicted and observed time to first token",
      SECOND_ERRORS,
    );
    this.#shadows = counter("shadow_requests", "Copies of requests sent to another model, by rule");
    this.#observeWorkers(workers);
    this.#observeResources(resources);
  }

  decided(decision: DecisionRecord): void {
    const { tenant, model, rule, backend, backendType } = decision;
    this.#decisions.add(1, { tenant, model, rule, backend, backend_type: backendType });
  }

  ended(decision: DecisionRecord, end: OutcomeRecord): void {
    const labels = { tenant: decision.tenant, model: decision.model };
    this.#requests.add(1, { ...labels, api: decision.api, outcome: end.outcome, status: end.status });
    if (end.servedBy !== decision.backend)
      this.#fallbacks.add(1, { ...labels, from: decision.backend, to: end.servedBy });
    if (end.outcome !== "ok") return;
    this.#e2e.record(end.e2eMs / 1000, labels);
    this.#recordTokens(end, labels);
    if (decision.stream && end.ttftMs !== undefined) this.#recordStream(decision, end, end.ttftMs, labels);
    if (end.cachedTokens !== undefined && end.servedBy === decision.backend) {
      const error = decision.predictedCachedTokens - end.cachedTokens;
      this.#cachedError.record(Math.abs(error), { ...labels, direction: directionOf(error) });
    }
  }

  refused(refusal: RefusalRecord): void {
    const { tenant, model, rule, status, code } = refusal;
    this.#refusals.add(1, { tenant, model, rule, status, code });
  }

  shadowed({ rule, model, worker, status }: ShadowRecord): void {
    this.#shadows.add(1, { rule, model, worker, status });
  }

  /** The page for Prometheus. */
  async page(): Promise<string> {
    const { resourceMetrics } = await this.#exporter.collect();
    return this.#serializer.serialize(resourceMetrics);
  }

  #recordTokens(end: OutcomeRecord, labels: { tenant: string; model: string }): void {
    const { promptTokens, cachedTokens, outputTokens } = end;
    if (promptTokens === undefined && outputTokens === undefined) this.#withoutUsage.add(1, labels);
    if (promptTokens !== undefined) {
      this.#inputTokens.add(promptTokens, labels);
      this.#inputTokensPerRequest.record(promptTokens, labels);
    }
    if (outputTokens !== undefined) {
      this.#outputTokens.add(outputTokens, labels);
      this.#outputTokensPerRequest.record(outputTokens, labels);
    }
    if (promptTokens !== undefined && cachedTokens !== undefined) {
      this.#cachedTokens.add(cachedTokens, labels);
      this.#uncachedTokens.add(Math.max(0, promptTokens - cachedTokens), labels);
    }
  }

  #recordStream(
    decision: DecisionRecord,
    end: OutcomeRecord,
    ttftMs: number,
    labels: { tenant: string; model: string },
  ): void {
    this.#ttft.record(ttftMs / 1000, labels);
    if (end.servedBy === decision.backend) {
      const errorSeconds = (decision.predictedTtftMs - ttftMs) / 1000;
      this.#ttftError.record(Math.abs(errorSeconds), { ...labels, direction: directionOf(errorSeconds) });
    }
    if (end.outputTokens !== undefined && end.outputTokens > 1) {
      this.#itl.record((end.e2eMs - ttftMs) / 1000 / (end.outputTokens - 1), labels);
    }
  }

  #observeResources(resources: () => Iterable<ResourceGauges>): void {
    const description = "1 if what is declared is in use; 0 if it was refused and the last good version goes on";
    this.#provider
      .getMeter("kinference")
      .createObservableGauge("kinference_resource_accepted", { description })
      .addCallback((result: ObservableResult) => {
        for (const { accepted, ...labels } of resources()) result.observe(accepted ? 1 : 0, { ...labels });
      });
  }

  #observeWorkers(workers: () => Iterable<WorkerGauges>): void {
    const meter = this.#provider.getMeter("kinference");
    const gauge = (name: string, description: string, read: (worker: WorkerGauges) => number | undefined) => {
      meter
        .createObservableGauge(`kinference_worker_${name}`, { description })
        .addCallback((result: ObservableResult) => {
          for (const worker of workers()) {
            const value = read(worker);
            if (value !== undefined) result.observe(value, { worker: worker.name, pool: worker.pool });
          }
        });
    };
    gauge("healthy", "1 if the worker is used", (worker) => (worker.healthy ? 1 : 0));
    gauge("queued_prompts", "Prompts that wait for their prefill", (worker) => worker.queued);
    gauge("running_prompts", "Prompts in work", (worker) => worker.running);
    gauge("in_flight", "Our own requests there", (worker) => worker.inFlight);
    gauge("kv_cache_usage", "Share of the KV cache in use, 0 to 1", (worker) => worker.kvCacheUsage);
  }
}

/** OpenTelemetry's histograms take no negative values: which way a prediction was wrong is a label. */
function directionOf(error: number): "over" | "under" {
  return error >= 0 ? "over" : "under";
}
