import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  ENVOY_VERSIONS,
  eventually,
  post,
  type Stack,
  startStack,
  startWorker,
  type TestWorker,
} from "../support/stack.ts";

// Both ways of learning how a request ended (Envoy's access log, reading the stream) answer to the same tests.
describe.each(ENVOY_VERSIONS)("APIs through Envoy %s", (version) => {
  let workers: TestWorker[];
  let stack: Stack;
  let openai: OpenAI;
  let anthropic: Anthropic;

  beforeAll(async () => {
    workers = [await startWorker({ models: ["m", "other"] }), await startWorker()];
    stack = await startStack(version, { worker: workers.map((w) => w.url) });
    openai = new OpenAI({ baseURL: `${stack.url}/v1`, apiKey: "none", maxRetries: 0 });
    anthropic = new Anthropic({ baseURL: stack.url, apiKey: "none", maxRetries: 0 });
  });
  // A test counts outcomes from where the one before left them.
  beforeEach(() => stack.settled());
  afterAll(async () => {
    await stack?.stop();
    for (const { worker } of workers) await worker.close();
  });

  /** The outcome of the only request since `before`. */
  async function outcomeAfter(before: number) {
    await eventually(() => stack.recording.outcomes.length > before);
    expect(stack.recording.outcomes.length).toBe(before + 1);
    const last = stack.recording.outcomes.at(-1);
    if (last === undefined) throw new Error("no outcome");
    return last;
  }

  test("chat, whole and streamed, with usage as the worker reported it", async () => {
    const before = stack.recording.outcomes.length;
    const messages = [{ role: "user" as const, content: "how are you today, my friend? ".repeat(20) }];
    const whole = await openai.chat.completions.create({ model: "m", messages, max_tokens: 5 });
    expect(whole.choices[0]?.message.content?.split(" ").length).toBe(6);
    const first = await outcomeAfter(before);
    expect(first.outcome).toMatchObject({
      status: 200,
      outcome: "ok",
      promptTokens: whole.usage?.prompt_tokens,
      cachedTokens: 0,
      outputTokens: 5,
    });

    const stream = await openai.chat.completions.create({
      model: "m",
      messages,
      max_tokens: 5,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage: OpenAI.CompletionUsage | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    expect(text).toBe(whole.choices[0]?.message.content);
    const second = await outcomeAfter(before + 1);
    // The same prompt again goes where it is cached: all of its whole blocks are reused.
    expect(second.decision.backend).toBe(first.decision.backend);
    const reusable = Math.floor(((whole.usage?.prompt_tokens ?? 0) - 1) / 16) * 16;
    expect(usage?.prompt_tokens_details?.cached_tokens).toBe(reusable);
    expect(second.outcome).toMatchObject({
      status: 200,
      outcome: "ok",
      promptTokens: whole.usage?.prompt_tokens,
      cachedTokens: reusable,
      outputTokens: 5,
    });
    expect(Math.abs(second.decision.predictedCachedTokens - reusable)).toBeLessThanOrEqual(16);
    expect(second.outcome.ttftMs).toBeGreaterThan(0);
    expect(second.outcome.ttftMs).toBeLessThan(second.outcome.e2eMs);
  });

  test("completions, responses and embeddings", async () => {
    const completion = await openai.completions.create({ model: "m", prompt: "once upon a time", max_tokens: 3 });
    expect(completion.usage?.completion_tokens).toBe(3);
    await stack.settled();
    const before = stack.recording.outcomes.length;
    const response = await openai.responses.create({
      model: "m",
      instructions: "be brief",
      input: "hello",
      max_output_tokens: 3,
    });
    expect(response.output_text.trim().split(" ").length).toBe(3);
    const { outcome } = await outcomeAfter(before);
    expect(outcome).toMatchObject({ promptTokens: response.usage?.input_tokens, outputTokens: 3 });
    const events: string[] = [];
    for await (const event of await openai.responses.create({
      model: "m",
      input: "hello",
      max_output_tokens: 3,
      stream: true,
    }))
      events.push(event.type);
    expect(events[0]).toBe("response.created");
    expect(events.at(-1)).toBe("response.completed");
    const streamed = await outcomeAfter(before + 1);
    expect(streamed.outcome.outputTokens).toBe(3);
    const embedding = await openai.embeddings.create({ model: "m", input: ["a b c", "d"], encoding_format: "float" });
    expect(embedding.data.length).toBe(2);
  });

  test("Anthropic messages, whole, streamed and counted", async () => {
    const request = {
      model: "m",
      max_tokens: 4,
      system: "be kind",
      messages: [{ role: "user" as const, content: "good morning to you all ".repeat(20) }],
    };
    const before = stack.recording.outcomes.length;
    const whole = await anthropic.messages.create(request);
    expect(whole.usage.output_tokens).toBe(4);
    const first = await outcomeAfter(before);
    const promptTokens = whole.usage.input_tokens + (whole.usage.cache_read_input_tokens ?? 0);
    expect(first.outcome).toMatchObject({ promptTokens, cachedTokens: 0, outputTokens: 4 });
    const final = await anthropic.messages.stream(request).finalMessage();
    expect(final.content).toEqual(whole.content);
    const second = await outcomeAfter(before + 1);
    expect(second.outcome).toMatchObject({
      promptTokens,
      cachedTokens: Math.floor((promptTokens - 1) / 16) * 16,
      outputTokens: 4,
    });
    const { input_tokens } = await anthropic.messages.countTokens({ model: "m", messages: request.messages });
    expect(input_tokens).toBeGreaterThan(20);
  });

  test("models are the union over workers, and tokenize is answered", async () => {
    const models = await openai.models.list();
    expect(models.data.map((model) => model.id)).toEqual(["m", "other"]);
    const tokens = await post(`${stack.url}/tokenize`, { model: "m", prompt: "one two three" });
    expect(tokens.json.count).toBe(3);
    const only = await openai.chat.completions.create({
      model: "other",
      messages: [{ role: "user", content: "hi" }],
      max_tokens: 1,
    });
    expect(only.model).toBe("other");
  });

  test("a conversation stays on its worker and its answers are expected there", async () => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: "system", content: "You know everything about the history of trains. ".repeat(10) },
    ];
    const start = stack.recording.outcomes.length;
    for (let turn = 0; turn < 5; turn++) {
      messages.push({ role: "user", content: `question ${turn}: ${"and why did that happen so late? ".repeat(6)}` });
      const answer = await openai.chat.completions.create({ model: "m", messages, max_tokens: 60 });
      messages.push({ role: "assistant", content: answer.choices[0]?.message.content ?? "" });
      await stack.settled();
    }
    const turns = stack.recording.outcomes.slice(start);
    expect(new Set(turns.map((turn) => turn.outcome.servedBy)).size).toBe(1);
    for (const { decision, outcome } of turns.slice(1)) {
      const error = Math.abs(decision.predictedCachedTokens - (outcome.cachedTokens ?? 0));
      expect(
        error,
        `predicted ${decision.predictedCachedTokens}, reported ${outcome.cachedTokens}`,
      ).toBeLessThanOrEqual(0.1 * (outcome.promptTokens ?? 0));
    }
  });

  test("errors come in the client's own shape", async () => {
    const cases: [path: string, body: unknown, status: number, type: string][] = [
      ["/v1/chat/completions", { model: "nope", messages: [] }, 404, "not_found_error"],
      ["/v1/messages", { model: "nope", max_tokens: 1, messages: [] }, 404, "not_found_error"],
      ["/v1/chat/completions", '{"model": "m", "messages": [', 400, "invalid_request_error"],
      ["/v1/messages", "not json", 400, "invalid_request_error"],
      ["/v1/chat/completions", { model: 7, messages: [] }, 400, "invalid_request_error"],
      ["/v1/chat/completions", { model: "m", messages: "hi" }, 400, "invalid_request_error"],
      ["/v1/messages", { model: "m", max_tokens: "many", messages: [] }, 400, "invalid_request_error"],
      ["/v1/completions", { model: "m", prompt: [1, "a"] }, 400, "invalid_request_error"],
      ["/v1/chat/completions", "[]", 400, "invalid_request_error"],
      ["/v1/responses/abc/cancel", {}, 404, "not_found_error"],
      ["/v1/chat/completions/", {}, 404, "not_found_error"],
      ["//v1/chat/completions", {}, 404, "not_found_error"],
    ];
    for (const [path, body, status, type] of cases) {
      const reply = await post(`${stack.url}${path}`, body);
      expect(reply.status, `${path} ${JSON.stringify(body)}: ${reply.text}`).toBe(status);
      expect((reply.json.error as { type: string }).type).toBe(type);
      expect((reply.json.error as { message: string }).message).not.toBe("");
      expect(reply.json.type).toBe(path.startsWith("/v1/messages") ? "error" : undefined);
    }
    // A worker's own judgement passes as it is.
    await expect(
      openai.chat.completions.create({ model: "m", messages: [{ role: "user", content: "x ".repeat(40_000) }] }),
    ).rejects.toThrow(/maximum context length/);
    const wrongMethod = await fetch(`${stack.url}/v1/chat/completions`);
    expect(wrongMethod.status).toBe(405);
    const wrongType = await post(`${stack.url}/v1/chat/completions`, "a=b", {
      "content-type": "application/x-www-form-urlencoded",
    });
    expect(wrongType.status).toBe(415);
  });

  test("metrics agree with what was recorded", async () => {
    await stack.settled();
    const page = await (await fetch(`${stack.adminUrl}/metrics`)).text();
    const total = (name: string, filter = "") =>
      page
        .split("\n")
        .filter((line) => line.startsWith(`kinference_${name}{`) && line.includes(filter))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
    const ok = stack.recording.outcomes.filter(({ outcome }) => outcome.outcome === "ok");
    expect(total("requests_total", 'outcome="ok"')).toBe(ok.length);
    const sum = (field: "promptTokens" | "outputTokens" | "cachedTokens") =>
      ok.reduce((s, { outcome }) => s + (outcome[field] ?? 0), 0);
    expect(total("input_tokens_total")).toBe(sum("promptTokens"));
    expect(total("output_tokens_total")).toBe(sum("outputTokens"));
    expect(total("cached_prompt_tokens_total")).toBe(sum("cachedTokens"));
    expect(total("decisions_total")).toBe(stack.recording.decisions.length);
    expect(total("worker_healthy")).toBe(2);
    const state = (await (await fetch(`${stack.adminUrl}/state`)).json()) as {
      inFlight: number;
      workers: { inFlight: number; queuedTokens: number }[];
    };
    expect(state.inFlight).toBe(0);
    expect(state.workers.map((worker) => [worker.inFlight, worker.queuedTokens])).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });
});
