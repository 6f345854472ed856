// `make demo`: the whole product on this machine, with simulated workers and real SDK traffic, beside round robin.

import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findEnvoy } from "../src/cli/find-envoy.ts";
import type { EnvoyProcess } from "../src/gateway/envoy/process.ts";
import { freePort } from "../test/support/ports.ts";
import { DecisionsTable } from "./decisions-table.ts";
import { kinference, stopAll } from "./processes.ts";
import { startRoundRobin } from "./round-robin.ts";
import { runUser, type Sample, type UrlOf } from "./workload.ts";

const USERS = 12;
const TASKS = 8;
const MODELS = ["glm-5.3", "qwen-3.6-27b"] as const;
/** A small GPU's speed, with a cache that holds some of the demo's prompts on each worker. */
const WORKER_FLAGS = ["--blocks", "1600", "--prefill", "6000", "--step", "12", "--max-running", "16"];

const { values } = parseArgs({ options: { once: { type: "boolean", default: false } } });
let roundRobin: EnvoyProcess | undefined;

async function startWorkers(): Promise<{ model: string; port: number }[]> {
  const workers = await Promise.all(
    MODELS.flatMap((model) => [0, 1].map(async () => ({ model, port: await freePort() }))),
  );
  await Promise.all(
    workers.map(({ model, port }) =>
      kinference("simulate", "--listen", `127.0.0.1:${port}`, "--model", model, ...WORKER_FLAGS),
    ),
  );
  return workers;
}

/** Plays a provider outside: an OpenAI-compatible server that is quick but costs money. */
async function startProvider(): Promise<number> {
  const server = createServer((request, response) => {
    request.resume().once("end", () => {
      const choices = [
        { index: 0, message: { role: "assistant", content: "an answer from outside" }, finish_reason: "stop" },
      ];
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        JSON.stringify({
          id: "outside",
          object: "chat.completion",
          created: 0,
          model: "outside",
          choices,
          usage: { prompt_tokens: 1, completion_tokens: 5, total_tokens: 6 },
        }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

function poolResources(workers: readonly { model: string; port: number }[], providerPort: number): string {
  const numbers = new Map<string, number>();
  const slices = workers.map(({ model, port }) => {
    const short = model.split("-")[0] ?? model;
    const number = numbers.get(short) ?? 0;
    numbers.set(short, number + 1);
    return {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: `${short}-${number}`,
        namespace: "inference",
        labels: { "kinference.buoyant.io/inference-pool": "gpus" },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: ["127.0.0.1"], targetRef: { name: `${short}-${number}` } }],
      ports: [{ port }],
    };
  });
  const pool = {
    apiVersion: "inference.networking.k8s.io/v1",
    kind: "InferencePool",
    metadata: { name: "gpus", namespace: "inference" },
    spec: { selector: { matchLabels: { app: "vllm" } }, targetPorts: [{ number: 8000 }] },
  };
  const provider = {
    apiVersion: "kinference.buoyant.io/v1alpha1",
    kind: "InferenceProvider",
    metadata: { name: "bedrock", namespace: "inference" },
    spec: {
      type: "OpenAICompatible",
      endpoint: `http://127.0.0.1:${providerPort}`,
      models: MODELS.map((name) => ({ name, price: { input: 1, output: 4 } })),
    },
  };
  const file = join(mkdtempSync(join(tmpdir(), "kinference-demo-")), "pool.yaml");
  // JSON is YAML, one document after another.
  writeFileSync(file, [pool, provider, ...slices].map((object) => JSON.stringify(object, null, 2)).join("\n---\n"));
  return file;
}

async function runWorkload(urlOf: UrlOf): Promise<{ samples: Sample[]; seconds: number }> {
  const samples: Sample[] = [];
  const started = performance.now();
  await Promise.all(Array.from({ length: USERS }, (_, user) => runUser(user, TASKS, urlOf, samples)));
  return { samples, seconds: (performance.now() - started) / 1000 };
}

function summaryRow(name: string, { samples, seconds }: { samples: Sample[]; seconds: number }): string {
  const percentile = (numbers: number[], p: number) =>
    [...numbers].sort((a, b) => a - b)[Math.floor(p * (numbers.length - 1))]?.toFixed(0) ?? "-";
  const ttft = samples.flatMap((sample) => sample.ttftMs ?? []);
  const e2e = samples.map((sample) => sample.e2eMs);
  const cached =
    samples.reduce((sum, s) => sum + s.cachedTokens, 0) / samples.reduce((sum, s) => sum + s.promptTokens, 0);
  const errors = samples.filter((sample) => sample.error !== undefined);
  if (errors[0] !== undefined) console.error(`first error: ${errors[0].error}`);
  const columns = [
    name.padEnd(12),
    samples.length,
    errors.length,
    `${percentile(ttft, 0.5)} ms`,
    `${percentile(ttft, 0.9)} ms`,
    `${percentile(e2e, 0.5)} ms`,
    `${(100 * cached).toFixed(0)} %`,
    `${seconds.toFixed(1)} s`,
  ];
  return columns.map((column, i) => (i === 0 ? String(column) : String(column).padStart(10))).join(" ");
}

async function main(): Promise<number> {
  const envoy = findEnvoy();
  console.log(
    "starting: 4 + 4 simulated vLLM workers (2 of each model for each side), an Envoy for each side, the handler, a provider",
  );
  const [ours, theirs] = await Promise.all([startWorkers(), startWorkers()]);
  const [port, admin] = [8080, 9090].map(Number);
  const files = [
    poolResources(ours, await startProvider()),
    path("./resources.yaml"),
    path("../docs/policies/smart-semantic-routing.yaml"),
  ];
  await kinference(
    "up",
    ...files.flatMap((file) => ["-f", file]),
    "--listen",
    `127.0.0.1:${port}`,
    "--admin",
    `127.0.0.1:${admin}`,
    "--debug-headers",
    "--concurrency",
    "1",
  );
  const services = await Promise.all(
    MODELS.map(async (model) => ({
      model,
      listen: await freePort(),
      workers: theirs.filter((w) => w.model === model).map((w) => w.port),
    })),
  );
  roundRobin = await startRoundRobin(envoy, services);

  console.log(
    `\n${USERS} users of two tenants, each with the same ${TASKS} tasks on both sides: shared handbooks, conversations, short questions, personal data\n`,
  );
  const table = new DecisionsTable(`http://127.0.0.1:${admin}`);
  table.start();
  const withUs = await runWorkload(() => `http://127.0.0.1:${port}`);
  await table.stop();
  console.log("\nthe same once more, by round robin ...");
  const without = await runWorkload(
    (model) => `http://127.0.0.1:${services.find((service) => service.model === model)?.listen}`,
  );

  console.log(
    `\n${["", "requests", "errors", "TTFT p50", "TTFT p90", "E2E p50", "cached", "took"].map((title, i) => (i === 0 ? title.padEnd(12) : title.padStart(10))).join(" ")}`,
  );
  console.log(summaryRow("round robin", without));
  console.log(summaryRow("kinference", withUs));
  console.log(`\ndecisions by rule: ${[...table.rules].map(([rule, count]) => `${rule} ${count}`).join(", ")}`);
  const failed = [...withUs.samples, ...without.samples].filter((sample) => sample.error !== undefined).length;
  if (values.once) return failed === 0 ? 0 : 1;

  console.log(`
serving until Ctrl-C:
  curl -si http://127.0.0.1:${port}/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"model": "glm-5.3", "max_tokens": 20, "messages": [{"role": "user", "content": "What is the capital of France?"}]}'
  curl -s http://127.0.0.1:${port}/v1/models
  curl -s http://127.0.0.1:${admin}/state
  curl -s http://127.0.0.1:${admin}/metrics`);
  await new Promise<void>((resolve) => {
    process.once("SIGINT", resolve);
    process.once("SIGTERM", resolve);
  });
  return 0;
}

function path(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}

let status = 1;
try {
  status = await main();
} catch (error) {
  console.error((error as Error).message);
} finally {
  await roundRobin?.stop();
  await stopAll();
}
process.exit(status);
