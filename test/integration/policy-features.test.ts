import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import {
  chat,
  ENVOY_VERSIONS,
  eventually,
  poolYaml,
  post,
  type Reply,
  resourceFile,
  type Stack,
  startStack,
  startWorker,
  type TestWorker,
} from "../support/stack.ts";

const policyYaml = (spec: string) => `---
apiVersion: kinference.buoyant.io/v1alpha1
kind: InferencePolicy
metadata: { name: p, namespace: default }
spec:
${spec}`;
const modelYaml = (name: string, spec: string) => `---
apiVersion: kinference.buoyant.io/v1alpha1
kind: InferenceModel
metadata: { name: ${name}, namespace: default }
spec: ${spec}
`;

/** A classifier of one's own: says yes to what has "forbidden" in it. */
async function startClassifier(): Promise<{ url: string; asked: string[]; server: Server }> {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const { text } = JSON.parse(Buffer.concat(await request.toArray()).toString()) as { text: string };
    asked.push(text);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ score: text.includes("forbidden") ? 0.9 : 0.1 }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, asked, server };
}

describe.each(ENVOY_VERSIONS)("what policies can do, through Envoy %s", (version) => {
  const cleanups: (() => unknown)[] = [];
  let stack: Stack;
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function start(yaml: string, ...workers: TestWorker[]): Promise<void> {
    for (const { worker } of workers) cleanups.push(() => worker.close());
    stack = await startStack(version, { file: [resourceFile(`${poolYaml("pool", "default", workers)}${yaml}`)] });
    cleanups.push(() => stack.stop());
  }
  const used = ({ json }: Reply) => (json.usage as { total_tokens: number }).total_tokens;
  const remaining = ({ headers }: Reply) => Number(headers.get("x-ratelimit-remaining-tokens"));

  test("a limit is told in headers, settled by what was used, kept for each subject, and refused as the API refuses", async () => {
    const limit = "{ per: Header, header: x-user, tokens: Total, quantity: 1000, window: 24h }";
    await start(policyYaml(`  rules: [{ name: budget, limit: ${limit} }]`), await startWorker());
    const ask = (user: string, max_tokens: number) =>
      post(
        `${stack.url}/v1/chat/completions`,
        { model: "m", max_tokens, messages: [{ role: "user", content: "count me" }] },
        { "x-user": user },
      );
    const first = await ask("ada", 20);
    expect(first.status).toBe(200);
    expect(first.headers.get("x-ratelimit-limit-tokens")).toBe("1000");
    expect(first.headers.get("x-ratelimit-reset-tokens")).toMatch(/^\d+s$/);
    await stack.settled();
    const second = await ask("ada", 20);
    // While the second runs, its estimate is held on top of what the first really used.
    const estimate = 1000 - used(first) - remaining(second);
    expect(estimate).toBeGreaterThan(20);
    expect(estimate).toBeLessThan(60);
    await stack.settled();

    const refused = await ask("ada", 990);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(remaining(refused)).toBe(1000 - used(first) - used(second));
    expect(refused.json.error).toMatchObject({
      code: "rate_limit_exceeded",
      message: "The limit of 1000 tokens in 1 day is reached for ada.",
    });
    const anthropic = await post(
      `${stack.url}/v1/messages`,
      { model: "m", max_tokens: 990, messages: [{ role: "user", content: "count me" }] },
      { "x-user": "ada" },
    );
    expect([anthropic.status, anthropic.json.type]).toEqual([429, "error"]);
    expect(anthropic.json.error).toMatchObject({ type: "rate_limit_error" });
    expect((await ask("grace", 900)).status).toBe(200);
    expect((await ask("ada", 20)).status).toBe(200);
  });

  test("what a failed request held is given back", async () => {
    const worker = await startWorker({ maxModelLen: 100 });
    const limit = "{ per: Tenant, tokens: Total, quantity: 1000, window: 24h }";
    await start(policyYaml(`  rules: [{ name: budget, limit: ${limit} }]`), worker);
    // The worker refuses a prompt longer than its context.
    const failed = await chat(stack.url, "too much ".repeat(60), { max_tokens: 700 });
    expect(failed.status).toBe(400);
    await stack.settled();
    expect((await chat(stack.url, "fits", { max_tokens: 900 })).status).toBe(200);
  });

  test("a client may ask for a class; the answer says which model it was", async () => {
    const models = modelYaml("coder", "{ capabilities: [coding] }") + modelYaml("talker", "{ capabilities: [chat] }");
    await start(models, await startWorker({ models: ["coder"] }), await startWorker({ models: ["talker"] }));
    const reply = await chat(stack.url, "write a loop", { model: "class/coding", max_tokens: 2 });
    expect([reply.status, reply.json.model]).toEqual([200, "coder"]);
    expect((await chat(stack.url, "x", { model: "class/cooking" })).status).toBe(404);
  });

  test("a tag by a classifier over HTTP: believed while it answers, and against letting through when it does not", async () => {
    const classifier = await startClassifier();
    cleanups.push(() => classifier.server.close());
    const spec = `  tags: [{ name: secret, http: { url: "${classifier.url}", timeout: 2s, cacheSeconds: 0 } }]
  rules:
    - name: kept-from-big
      route: { exclude: [{ name: not-big, if: { tag: secret }, drop: { backend: { name: big } } }] }
`;
    const big = await startWorker();
    cleanups.push(() => big.worker.close());
    await start(
      `${policyYaml(spec)}---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: big, namespace: default, labels: { kinference.buoyant.io/inference-pool: pool } }
addressType: IPv4
endpoints: [{ addresses: ["127.0.0.1"], targetRef: { name: big } }]
ports: [{ port: ${big.port} }]
`,
    );
    expect((await chat(stack.url, "harmless", { max_tokens: 1 })).headers.get("x-kinference-worker")).toBe("big");
    const kept = await chat(stack.url, "a forbidden word", { max_tokens: 1 });
    expect([kept.status, (kept.json.error as { code: string }).code]).toEqual([403, "refused_by_policy"]);
    expect(classifier.asked).toEqual(["harmless", "a forbidden word"]);
    classifier.server.closeAllConnections();
    await new Promise((resolve) => classifier.server.close(resolve));
    expect((await chat(stack.url, "harmless again", { max_tokens: 1 })).status).toBe(403);
  });

  test("a shadow gets a copy under its own name, and the client sees nothing of it", async () => {
    const [old, young] = [await startWorker({ models: ["old"] }), await startWorker({ models: ["young"] })];
    await start(policyYaml("  rules: [{ name: try, route: { shadow: { model: young } } }]"), old, young);
    const reply = await chat(stack.url, "to both", { model: "old", max_tokens: 2 });
    expect([reply.status, reply.json.model]).toEqual([200, "old"]);
    await eventually(() => young.worker.served === 1);
    expect(old.worker.served).toBe(1);
    // A shadow that nobody can serve costs the client nothing.
    await young.worker.close();
    expect((await chat(stack.url, "to one", { model: "old", max_tokens: 2 })).status).toBe(200);
  });
});
