import { readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import {
  ENVOY_VERSIONS,
  eventually,
  pause,
  poolYaml,
  post,
  resourceFile,
  type Stack,
  startStack,
  startWorker,
  type TestWorker,
} from "../support/stack.ts";

const shipped = (name: string) => readFileSync(new URL(`../../docs/policies/${name}.yaml`, import.meta.url), "utf8");

/** An OpenAI-compatible provider outside: remembers all that reaches it. */
interface FakeProvider {
  url: string;
  received: { path: string; headers: IncomingHttpHeaders; body: string }[];
  server: Server;
}

async function startProvider(): Promise<FakeProvider> {
  const received: FakeProvider["received"] = [];
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    received.push({ path: request.url ?? "", headers: request.headers, body });
    const answer = {
      id: "p",
      object: "chat.completion",
      model: JSON.parse(body).model,
      choices: [{ index: 0, message: { role: "assistant", content: "from outside" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
    };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received, server };
}

const providerYaml = (name: string, url: string, model: string, providerName: string) => `---
apiVersion: kinference.buoyant.io/v1alpha1
kind: InferenceProvider
metadata: { name: ${name}, namespace: inference }
spec:
  type: OpenAICompatible
  endpoint: ${url}/serving-endpoints
  credentialsRef: { name: ${name}-key }
  models: [{ name: ${model}, providerName: ${providerName}, price: { input: 1, output: 2 } }]
---
apiVersion: v1
kind: Secret
metadata: { name: ${name}-key, namespace: inference }
stringData: { apiKey: secret-of-${name} }
`;

const MODEL = "glm-5.3";
const ask = (url: string, content: string, more: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
  post(
    `${url}/v1/chat/completions`,
    { model: MODEL, max_tokens: 4, messages: [{ role: "user", content }], ...more },
    headers,
  );

describe.each(ENVOY_VERSIONS)("the three policies, unchanged, through Envoy %s", (version) => {
  const cleanups: (() => unknown)[] = [];
  let stack: Stack;
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function start(policy: string, workers: TestWorker[], more = ""): Promise<void> {
    for (const { worker } of workers) cleanups.push(() => worker.close());
    stack = await startStack(version, {
      file: [resourceFile(`${poolYaml("pool", "inference", workers)}${more}---\n${shipped(policy)}`)],
    });
    cleanups.push(() => stack.stop());
  }
  async function provider(): Promise<FakeProvider> {
    const fake = await startProvider();
    cleanups.push(
      () => fake.server.closeAllConnections(),
      () => fake.server.close(),
    );
    return fake;
  }

  test("smart-semantic-routing: easy prompts go to the idle smaller model, under its own name", async () => {
    const glm = await startWorker({ models: [MODEL], prefillTokensPerSecond: 2000, stepMs: 40 });
    const qwen = await startWorker({ models: ["qwen-3.6-27b"] });
    await start("smart-semantic-routing", [glm, qwen]);
    // The larger model is busy, so that the smaller one is the quicker choice.
    const busy = Array.from({ length: 3 }, (_, i) =>
      ask(stack.url, `Prove theorem ${i} and derive the asymptotic complexity of it: ${`lemma ${i} `.repeat(400)}`, {
        max_tokens: 12,
      }),
    );
    await eventually(() => stack.recording.decisions.length === 3);
    expect(stack.recording.decisions.map((d) => d.model)).toEqual([MODEL, MODEL, MODEL]);
    const easy = await ask(stack.url, "What is the capital of France?");
    expect(easy.json.model).toBe("qwen-3.6-27b");
    expect(easy.headers.get("x-kinference-rule")).toBe("smart-semantic-routing/low-complexity-consider-qwen");
    const hard = await ask(
      stack.url,
      "Design a distributed lock with fencing tokens and prove its safety step by step.",
    );
    expect(hard.json.model).toBe(MODEL);
    expect(hard.headers.get("x-kinference-rule")).toBe("default");
    await Promise.all(busy);
  });

  test("burst-policy: the provider gets what exceeds two queued prompts per worker, and nothing before", async () => {
    const outside = await provider();
    const workers = [
      await startWorker({ models: [MODEL], maxRunning: 1, stepMs: 10 }),
      await startWorker({ models: [MODEL], maxRunning: 1, stepMs: 10 }),
    ];
    await start("burst-policy", workers, providerYaml("bedrock", outside.url, MODEL, "vendor.glm"));
    const long = { max_tokens: 250 };
    const inside: Promise<unknown>[] = [];
    // One runs on each worker, and the scrape shows that the next ones queue.
    for (let i = 0; i < 4; i++) inside.push(ask(stack.url, `request number ${i}`, long));
    await pause(400);
    for (let i = 4; i < 8; i++) {
      inside.push(ask(stack.url, `request number ${i}`, long));
      await pause(150);
    }
    expect(outside.received).toEqual([]);
    expect(workers.map(({ worker }) => worker.served).sort()).toEqual([4, 4]);
    // Three are queued on each now: the next is one too many.
    const burst = await ask(stack.url, "one more", long, {
      authorization: "Bearer of-the-client",
      cookie: "a=b",
      "x-api-key": "mine",
    });
    expect(burst.status).toBe(200);
    expect(burst.headers.get("x-kinference-worker")).toBe("bedrock");
    const [received] = outside.received;
    expect(outside.received).toHaveLength(1);
    expect(received?.path).toBe("/serving-endpoints/chat/completions");
    expect(JSON.parse(received?.body ?? "")).toMatchObject({
      model: "vendor.glm",
      messages: [{ role: "user", content: "one more" }],
      max_tokens: 250,
    });
    expect(received?.headers).toMatchObject({
      authorization: "Bearer secret-of-bedrock",
      host: new URL(outside.url).host,
    });
    for (const name of ["cookie", "x-api-key", "x-kinference-cluster", "x-gateway-destination-endpoint"])
      expect(received?.headers[name]).toBeUndefined();
    const dump = await (await fetch(`${stack.gateway.adminUrl}/config_dump?include_eds`)).text();
    expect(dump).toContain("provider/inference/bedrock");
    expect(dump).not.toContain("secret-of-bedrock");
    await Promise.all(inside);
    expect((await ask(stack.url, "calm again")).headers.get("x-kinference-worker")).toMatch(/^pool-/);
  }, 60_000);

  test("pii-stays-local: marked prompts never reach the provider, not even when all workers are down", async () => {
    const outside = await provider();
    const workers = [await startWorker({ models: [MODEL] })];
    await start("pii-stays-local", workers, providerYaml("databricks", outside.url, MODEL, MODEL));
    expect((await ask(stack.url, "hello there")).headers.get("x-kinference-worker")).toBe("databricks");
    expect(outside.received).toHaveLength(1);

    const marked: [name: string, body: unknown][] = [
      ["plain", { messages: [{ role: "user", content: "mail anna@firma.de, card 4111 1111 1111 1111" }] }],
      [
        "in the history",
        {
          messages: [
            { role: "user", content: "I am anna@firma.de" },
            { role: "assistant", content: "hello" },
            { role: "user", content: "bye" },
          ],
        },
      ],
      ["in a part", { messages: [{ role: "user", content: [{ type: "text", text: "4111-1111-1111-1111" }] }] }],
      ["escaped", `{"model":"${MODEL}","messages":[{"role":"user","content":"anna\\u0040firma.de"}]}`],
      [
        "in a tool",
        {
          messages: [{ role: "user", content: "hi" }],
          tools: [{ type: "function", function: { name: "f", description: "ask anna@firma.de" } }],
        },
      ],
      [
        "in a field that we do not know",
        { messages: [{ role: "user", content: "hi" }], metadata: { owner: "anna@firma.de" } },
      ],
      ["as a key", { messages: [{ role: "user", content: "hi" }], metadata: { "anna@firma.de": 1 } }],
      ["as a number", { messages: [{ role: "user", content: "hi" }], metadata: { card: 4111111111111111 } }],
    ];
    for (const [name, body] of marked) {
      const reply = await post(
        `${stack.url}/v1/chat/completions`,
        typeof body === "string" ? body : { model: MODEL, max_tokens: 2, ...(body as object) },
      );
      expect([name, reply.status, reply.headers.get("x-kinference-worker")]).toEqual([name, 200, "pool-0"]);
    }
    const ids = await post(`${stack.url}/v1/completions`, { model: MODEL, prompt: [1, 2, 3], max_tokens: 2 });
    expect(ids.headers.get("x-kinference-worker")).toBe("pool-0");
    const twice = `{"model":"${MODEL}","messages":[{"role":"user","content":"anna@firma.de","content":"hi"}]}`;
    expect((await post(`${stack.url}/v1/chat/completions`, twice)).status).toBe(400);

    for (const { worker } of workers) await worker.close();
    for (let i = 0; i < 5; i++) {
      const refused = await ask(stack.url, "mail anna@firma.de, card 4111 1111 1111 1111");
      expect(refused.status).toBe(503);
      expect((refused.json.error as { message: string }).message).not.toBe("");
      await pause(50);
    }
    expect(outside.received).toHaveLength(1);
    expect((await ask(stack.url, "hello again")).headers.get("x-kinference-worker")).toBe("databricks");
  });
});

describe("ordered fallbacks across clusters (Envoy 1.40)", () => {
  test("a worker that dies under a request is followed by the provider that the policy allows", async () => {
    const outside = await startProvider();
    const worker = await startWorker({ models: [MODEL] });
    const resources = `${poolYaml("pool", "inference", [worker])}${providerYaml("bedrock", outside.url, MODEL, MODEL).replace("/serving-endpoints", "")}---\n${shipped("burst-policy")}`;
    const stack = await startStack("1.40", { file: [resourceFile(resources)] });
    await worker.worker.close();
    const reply = await ask(stack.url, "hello");
    expect(reply.status).toBe(200);
    expect(reply.headers.get("x-kinference-worker")).toBe("bedrock");
    await stack.settled();
    expect(stack.recording.outcomes[0]).toMatchObject({
      decision: { backend: "pool-0", fallbacks: ["bedrock"] },
      outcome: { servedBy: "bedrock", outcome: "ok" },
    });
    await stack.stop();
    outside.server.closeAllConnections();
    outside.server.close();
  });
});
