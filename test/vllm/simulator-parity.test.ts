import { afterAll, beforeAll, expect, test } from "vitest";
import { SimulatedWorker } from "../../src/simulator/worker-server.ts";
import { startVllm, type VllmProcess } from "./vllm-process.ts";

// The simulator's prefix cache against a real vLLM's: the same sequence of requests, block for block the same reuse.
// Prompts are token ids, so that no tokenizer stands between; each server's answers go into its own next prompts.
const BLOCKS = 256;
const BLOCK_TOKENS = 32;
const MODEL = "tiny";
let vllm: VllmProcess;
let simulator: SimulatedWorker;
let simulatorUrl: string;

beforeAll(async () => {
  vllm = await startVllm({ BLOCKS: String(BLOCKS), SEQS: "8", LEN: "4096", NAME: MODEL });
  simulator = new SimulatedWorker({
    models: [MODEL],
    blocks: BLOCKS,
    blockTokens: BLOCK_TOKENS,
    maxRunning: 8,
    maxModelLen: 4096,
    prefillTokensPerSecond: 1e6,
    stepMs: 0,
  });
  simulatorUrl = `http://127.0.0.1:${await simulator.listen(0)}`;
}, 400_000);

afterAll(async () => {
  await simulator?.close();
  await vllm?.stop();
});

interface Answer {
  ids: number[];
  cached: number;
}

async function complete(url: string, prompt: number[], maxTokens: number): Promise<Answer> {
  const body = {
    model: MODEL,
    prompt,
    max_tokens: maxTokens,
    temperature: 0,
    ignore_eos: true,
    return_token_ids: true,
  };
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as {
    choices: [{ token_ids: number[] }];
    usage: { prompt_tokens_details: { cached_tokens: number } };
  };
  expect(response.status, JSON.stringify(answer)).toBe(200);
  return { ids: answer.choices[0].token_ids, cached: answer.usage.prompt_tokens_details.cached_tokens };
}

/** Park-Miller: the same sequence on every run. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

test("cached tokens are those of a real vLLM, over shared prefixes, conversations and evictions", {
  timeout: 600_000,
}, async () => {
  const random = generator(42);
  const ids = (count: number) => Array.from({ length: count }, () => 1000 + random(100_000));
  const prefixes = Array.from({ length: 12 }, () => ids(300 + random(900)));
  const conversations: { real: number[]; simulated: number[] }[] = [];
  const differences: string[] = [];
  let reused = 0;
  let evicted = 0;
  for (let i = 0; i < 160; i++) {
    const kind = random(3);
    const more = ids(1 + random(250));
    let turn: { real: number[]; simulated: number[] };
    const known = conversations[random(conversations.length + 1)];
    if (kind > 0 && known !== undefined && known.real.length < 2500) {
      turn = { real: [...known.real, ...more], simulated: [...known.simulated, ...more] };
    } else {
      const prompt = [...(prefixes[random(prefixes.length)] ?? []), ...more];
      turn = { real: prompt, simulated: prompt };
    }
    const maxTokens = 1 + random(70);
    const [real, simulated] = await Promise.all([
      complete(vllm.url, turn.real, maxTokens),
      complete(simulatorUrl, turn.simulated, maxTokens),
    ]);
    if (real.cached !== simulated.cached)
      differences.push(`request ${i} (${turn.real.length} tokens): vLLM ${real.cached}, simulator ${simulated.cached}`);
    reused += real.cached;
    if (known !== undefined && kind > 0 && real.cached < known.real.length - BLOCK_TOKENS) evicted++;
    conversations.push({ real: [...turn.real, ...real.ids], simulated: [...turn.simulated, ...simulated.ids] });
    if (conversations.length > 24) conversations.shift();
  }
  expect(differences).toEqual([]);
  // The sequence must have tried what it claims to.
  expect(reused).toBeGreaterThan(20_000);
  expect(evicted).toBeGreaterThan(10);
});
