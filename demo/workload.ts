import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

/** Where an arm takes a model's requests: plain Kubernetes has a Service for each model, Kinference one URL for all. */
export type UrlOf = (model: string) => string;

export interface Sample {
  /** Milliseconds to the first token; of streams only. */
  ttftMs?: number;
  e2eMs: number;
  promptTokens: number;
  cachedTokens: number;
  error?: string;
}

const TENANT_KEYS = ["search-key", "support-key"];
const MODELS = ["glm-5.3", "qwen-3.6-27b"] as const;
const SUBJECTS =
  "trains rivers bridges glaciers orchards violins satellites harbours volcanoes archives lighthouses canals".split(
    " ",
  );
const COUNTRIES = "France Japan Peru Kenya Norway Vietnam Canada Greece".split(" ");

/** Park-Miller: every arm gets the same requests. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

function handbook(subject: string): string {
  return `You are the expert for ${subject}. Follow the handbook. `.concat(
    Array.from(
      { length: 90 },
      (_, i) =>
        `Rule ${i + 1} about ${subject}: prefer the answer that section ${i + 3} gives for case ${(i * 7) % 31}.`,
    ).join(" "),
  );
}

/** One user: a fixed list of tasks, by the official SDKs, one after another. */
export async function runUser(user: number, tasks: number, urlOf: UrlOf, samples: Sample[]): Promise<void> {
  const random = generator(1000 + user);
  const apiKey = TENANT_KEYS[user % 2] ?? "";
  for (let task = 0; task < tasks; task++) {
    const model = MODELS[random(3) === 0 ? 1 : 0] ?? MODELS[0];
    const subject = SUBJECTS[random(SUBJECTS.length)] ?? "";
    const kind = random(10);
    if (kind < 4) await sharedPrefix(urlOf(model), apiKey, model, subject, random(1000), samples);
    else if (kind < 7)
      await conversation(urlOf(model), apiKey, model, `${subject} ${user}-${task}`, 3 + random(3), samples);
    else if (kind < 9)
      await short(
        urlOf(model),
        apiKey,
        model,
        `What is the capital of ${COUNTRIES[random(COUNTRIES.length)]}?`,
        samples,
      );
    else
      await short(
        urlOf(model),
        apiKey,
        model,
        `Write a reply to user${random(1000)}@mail-service.com about the card 4111 1111 1111 1111.`,
        samples,
      );
  }
}

async function sharedPrefix(
  url: string,
  apiKey: string,
  model: string,
  subject: string,
  question: number,
  samples: Sample[],
): Promise<void> {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
  await measured(samples, async (sample, started) => {
    const stream = await openai.chat.completions.create({
      model,
      messages: [
        { role: "system", content: handbook(subject) },
        {
          role: "user",
          content: `Design an approach to case ${question} and explain why it follows from the handbook, step by step.`,
        },
      ],
      max_tokens: 30,
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) sample.ttftMs ??= performance.now() - started;
      if (chunk.usage) addUsage(sample, chunk.usage.prompt_tokens, chunk.usage.prompt_tokens_details?.cached_tokens);
    }
  });
}

async function conversation(
  url: string,
  apiKey: string,
  model: string,
  topic: string,
  turns: number,
  samples: Sample[],
): Promise<void> {
  const anthropic = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
  const messages: Anthropic.MessageParam[] = [];
  for (let turn = 0; turn < turns; turn++) {
    messages.push({
      role: "user",
      content: `${turn === 0 ? handbook(topic) : ""} Analyze point ${turn + 1} and compare it with the one before.`,
    });
    let text = "";
    await measured(samples, async (sample, started) => {
      const stream = anthropic.messages.stream({ model, max_tokens: 40, messages });
      stream.on("text", () => {
        sample.ttftMs ??= performance.now() - started;
      });
      const { content, usage } = await stream.finalMessage();
      const cached = usage.cache_read_input_tokens ?? 0;
      addUsage(sample, usage.input_tokens + cached, cached);
      text = content[0]?.type === "text" ? content[0].text : "";
    });
    messages.push({ role: "assistant", content: text || "none" });
  }
}

async function short(url: string, apiKey: string, model: string, question: string, samples: Sample[]): Promise<void> {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
  await measured(samples, async (sample) => {
    const { usage } = await openai.chat.completions.create({
      model,
      messages: [{ role: "user", content: question }],
      max_tokens: 10,
    });
    addUsage(sample, usage?.prompt_tokens ?? 0, usage?.prompt_tokens_details?.cached_tokens);
  });
}

function addUsage(sample: Sample, promptTokens: number, cachedTokens: number | undefined): void {
  sample.promptTokens = promptTokens;
  sample.cachedTokens = cachedTokens ?? 0;
}

async function measured(samples: Sample[], run: (sample: Sample, started: number) => Promise<void>): Promise<void> {
  const sample: Sample = { e2eMs: 0, promptTokens: 0, cachedTokens: 0 };
  const started = performance.now();
  try {
    await run(sample, started);
  } catch (error) {
    sample.error = String(error);
  }
  sample.e2eMs = performance.now() - started;
  samples.push(sample);
}
