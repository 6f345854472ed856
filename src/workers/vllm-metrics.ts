/** What a scrape of vLLM's `/metrics` says, summed over its engines. */
export interface VllmMetrics {
  running: number;
  waiting: number;
  /** 0 to 1, the mean over engines. */
  kvCacheUsage: number;
  /** Absent where the worker does not say. */
  blockTokens?: number;
  capacityTokens?: number;
  /** Unix seconds at which the engine's counters began: another value means another process. */
  createdAt?: number;
}

/**
 * Reads the few series that decisions need and skips the rest of the page unparsed. Names as in vLLM 0.32, and those of
 * older versions. Undefined if the page is not vLLM's.
 */
export function parseVllmMetrics(page: string): VllmMetrics | undefined {
  let running: number | undefined;
  let waiting: number | undefined;
  let usage = 0;
  let engines = 0;
  const metrics: VllmMetrics = { running: 0, waiting: 0, kvCacheUsage: 0 };
  for (const line of vllmLines(page)) {
    const name = line.slice(0, line.search(/[{ ]/));
    const value = Number(line.slice(line.lastIndexOf(" ") + 1));
    if (name === "vllm:num_requests_running") running = (running ?? 0) + value;
    else if (name === "vllm:num_requests_waiting") waiting = (waiting ?? 0) + value;
    else if (name === "vllm:kv_cache_usage_perc" || name === "vllm:gpu_cache_usage_perc") {
      usage += value;
      engines++;
    } else if (name === "vllm:prompt_tokens_created") metrics.createdAt = value;
    else if (name === "vllm:cache_config_info") readCacheConfig(line, metrics);
  }
  if (running === undefined || waiting === undefined) return undefined;
  return { ...metrics, running, waiting, kvCacheUsage: engines > 0 ? usage / engines : 0 };
}

/** The lines that begin with `vllm:`. Comments mention the names too, but do not begin with them. */
function* vllmLines(page: string): Generator<string> {
  for (let at = page.startsWith("vllm:") ? 0 : page.indexOf("\nvllm:") + 1; at > 0 || page.startsWith("vllm:"); ) {
    const newline = page.indexOf("\n", at);
    yield page.slice(at, newline < 0 ? undefined : newline);
    const next = page.indexOf("\nvllm:", at);
    if (next < 0) return;
    at = next + 1;
  }
}

function readCacheConfig(line: string, metrics: VllmMetrics): void {
  const label = (name: string) => Number(new RegExp(`[{,]${name}="(\\d+)"`).exec(line)?.[1] ?? Number.NaN);
  const blockTokens = label("block_size");
  if (!(blockTokens > 0)) return;
  metrics.blockTokens = blockTokens;
  // One block is vLLM's null block, which never holds anything.
  const blocks = label("num_gpu_blocks") - 1;
  if (blocks > 0) metrics.capacityTokens = blocks * blockTokens;
}
