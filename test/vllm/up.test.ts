import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type Stack, startStack } from "../support/stack.ts";
import { startVllm, type VllmProcess } from "./vllm-process.ts";

// The product in front of two real vLLM workers, used by the official SDKs.
const MODEL = "tiny";
const BLOCK_TOKENS = 32;
let workers: VllmProcess[];
let stack: Stack;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  workers = await Promise.all([1, 2].map(() => startVllm({ BLOCKS: "256", SEQS: "8", LEN: "4096", NAME: MODEL })));
  stack = await startStack("1.40", { worker: workers.map((worker) => worker.url) });
  openai = new OpenAI({ baseURL: `${stack.url}/v1`, apiKey: "none", maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: stack.url, apiKey: "none", maxRetries: 0 });
}, 600_000);
beforeEach(() => stack.settled());
afterAll(async () => {
  await stack?.stop();
  await Promise.all(workers?.map((worker) => worker.stop()) ?? []);
});

const lastOutcome = async () => {
  await stack.settled();
  const last = stack.recording.outcomes.at(-1);
  if (last === undefined) throw new Error("no outcome");
  return last;
};
const PROSE =
  "The committee met on the second floor of the old library to discuss how rivers, bridges and railways shaped the town. ";

test("chat, whole and streamed", async () => {
  const messages = [{ role: "user" as const, content: PROSE.repeat(8) }];
  const whole = await openai.chat.completions.create({ model: MODEL, messages, max_tokens: 8 });
  expect((await lastOutcome()).outcome).toMatchObject({
    status: 200,
    promptTokens: whole.usage?.prompt_tokens,
    outputTokens: whole.usage?.completion_tokens,
  });
  const stream = await openai.chat.completions.create({
    model: MODEL,
    messages,
    max_tokens: 8,
    stream: true,
    stream_options: { include_usage: true },
  });
  let usage: OpenAI.CompletionUsage | undefined;
  for await (const chunk of stream) usage = chunk.usage ?? usage;
  const { decision, outcome } = await lastOutcome();
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? 0;
  expect(cached).toBeGreaterThan(100);
  expect(outcome).toMatchObject({ cachedTokens: cached, promptTokens: usage?.prompt_tokens });
  expect(Math.abs(decision.predictedCachedTokens - cached)).toBeLessThanOrEqual(BLOCK_TOKENS);
  expect(outcome.ttftMs).toBeGreaterThan(0);
});

test("messages and responses, whole and streamed", async () => {
  const request = {
    model: MODEL,
    max_tokens: 8,
    system: PROSE.repeat(4),
    messages: [{ role: "user" as const, content: "Who met?" }],
  };
  const whole = await anthropic.messages.create(request);
  expect(whole.usage.output_tokens).toBeGreaterThan(0);
  await stack.settled();
  const streamed = await anthropic.messages.stream(request).finalMessage();
  const { outcome } = await lastOutcome();
  expect(outcome).toMatchObject({
    cachedTokens: streamed.usage.cache_read_input_tokens,
    outputTokens: streamed.usage.output_tokens,
  });
  expect(outcome.cachedTokens).toBeGreaterThan(0);
  expect(
    (await anthropic.messages.countTokens({ model: MODEL, messages: request.messages })).input_tokens,
  ).toBeGreaterThan(0);

  const response = await openai.responses.create({ model: MODEL, input: PROSE, max_output_tokens: 8 });
  expect((await lastOutcome()).outcome).toMatchObject({ status: 200, promptTokens: response.usage?.input_tokens });
  let completed: OpenAI.Responses.Response | undefined;
  for await (const event of await openai.responses.create({
    model: MODEL,
    input: PROSE,
    max_output_tokens: 8,
    stream: true,
  })) {
    if (event.type === "response.completed" || event.type === "response.incomplete") completed = event.response;
  }
  expect((await lastOutcome()).outcome).toMatchObject({
    promptTokens: completed?.usage?.input_tokens,
    outputTokens: completed?.usage?.output_tokens,
  });
});

test("conversations stay on their worker, and what they reuse is predicted", async () => {
  const rows: string[] = [];
  let promptTokens = 0;
  let error = 0;
  for (const user of [0, 1, 2, 3]) {
    const served = new Set<string>();
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: "system", content: `You are guide number ${user}. ${PROSE.repeat(6)}` },
    ];
    for (let turn = 0; turn < 5; turn++) {
      messages.push({ role: "user", content: `Question ${turn} of visitor ${user}: ${PROSE}` });
      const answer = await openai.chat.completions
        .create(
          { model: MODEL, messages, max_tokens: 48, temperature: 0 },
          { headers: { "x-test-user": String(user) } },
        )
        .withResponse();
      served.add(answer.response.headers.get("x-kinference-worker") ?? "");
      const predicted = Number(answer.response.headers.get("x-kinference-cached-tokens"));
      const reported = answer.data.usage?.prompt_tokens_details?.cached_tokens ?? 0;
      rows.push(
        `user ${user} turn ${turn}: ${answer.data.usage?.prompt_tokens} prompt tokens, cached: predicted ${predicted}, reported ${reported}`,
      );
      if (turn > 0) {
        promptTokens += answer.data.usage?.prompt_tokens ?? 0;
        error += Math.abs(predicted - reported);
      }
      messages.push({ role: "assistant", content: answer.data.choices[0]?.message.content ?? "" });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(served.size).toBe(1);
  }
  console.log(rows.sort().join("\n"));
  expect(error / promptTokens).toBeLessThan(0.1);
});

test("vLLM's own errors reach the client as they are", async () => {
  await expect(
    openai.chat.completions.create({ model: MODEL, messages: [{ role: "user", content: "x ".repeat(20_000) }] }),
  ).rejects.toThrow(/context length/);
  await expect(
    openai.chat.completions.create({ model: MODEL, messages: [{ role: "user", content: "x" }], temperature: -1 }),
  ).rejects.toThrow(/temperature/);
});
