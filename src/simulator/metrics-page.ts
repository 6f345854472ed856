import type { Engine } from "./engine.ts";

/** `/metrics` with the names, labels and units of vLLM 0.32, as far as the simulator has what they count. */
export function metricsPage(engine: Engine, model: string, startedAt: number): string {
  const { counters, settings } = engine;
  const labels = `{engine="0",model_name="${model}"}`;
  const lines: string[] = [];
  const add = (type: string, name: string, value: number, help: string) => {
    const sample = type === "counter" ? `${name}_total` : name;
    lines.push(`# HELP ${sample} ${help}`, `# TYPE ${sample} ${type}`, `${sample}${labels} ${value}`);
    if (type === "counter") lines.push(`# TYPE ${name}_created gauge`, `${name}_created${labels} ${startedAt}`);
  };
  add("gauge", "vllm:num_requests_running", engine.running, "Number of requests in model execution batches.");
  add("gauge", "vllm:num_requests_waiting", engine.waiting, "Number of requests waiting to be processed.");
  add("gauge", "vllm:kv_cache_usage_perc", engine.kvCacheUsage, "KV-cache usage. 1 means 100 percent usage.");
  add(
    "counter",
    "vllm:prefix_cache_queries",
    counters.prefixQueries,
    "Prefix cache queries, in terms of number of queried tokens.",
  );
  add(
    "counter",
    "vllm:prefix_cache_hits",
    counters.prefixHits,
    "Prefix cache hits, in terms of number of cached tokens.",
  );
  add("counter", "vllm:num_preemptions", counters.preemptions, "Cumulative number of preemption from the engine.");
  add("counter", "vllm:prompt_tokens", counters.promptTokens, "Number of prefill tokens processed.");
  add("counter", "vllm:generation_tokens", counters.generatedTokens, "Number of generation tokens processed.");
  add("counter", "vllm:request_success", counters.finished, "Count of successfully processed requests.");
  const config = `block_size="${settings.blockTokens}",enable_prefix_caching="True",engine="0",num_gpu_blocks="${settings.blocks}"`;
  lines.push(
    "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig",
    "# TYPE vllm:cache_config_info gauge",
  );
  lines.push(`vllm:cache_config_info{${config}} 1`);
  return `${lines.join("\n")}\n`;
}
