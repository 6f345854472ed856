import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { type Running, type UpFlags, up } from "../../src/cli/up.ts";
import { SimulatedWorker, type SimulatorSettings } from "../../src/simulator/worker-server.ts";
import type { DecisionRecord, OutcomeRecord, Recorder, RefusalRecord } from "../../src/telemetry/records.ts";
import { freePort } from "./ports.ts";

/** The Envoys that everything must work on: without usage filters, with them, and with ordered fallbacks too. */
export const ENVOY_VERSIONS = ["1.36", "1.38", "1.40"] as const;
export type EnvoyVersion = (typeof ENVOY_VERSIONS)[number];

export function envoyPath(version: EnvoyVersion): string {
  const path = fileURLToPath(new URL(`../../.cache/envoy/${version}/envoy`, import.meta.url));
  if (!existsSync(path)) throw new Error(`no Envoy ${version}; run \`make envoys\``);
  return path;
}

/** Remembers all that happened, so that tests can ask. */
export class Recording implements Recorder {
  readonly decisions: DecisionRecord[] = [];
  readonly outcomes: { decision: DecisionRecord; outcome: OutcomeRecord }[] = [];
  readonly refusals: RefusalRecord[] = [];

  decided(decision: DecisionRecord): void {
    this.decisions.push(decision);
  }
  ended(decision: DecisionRecord, outcome: OutcomeRecord): void {
    this.outcomes.push({ decision, outcome });
  }
  refused(refusal: RefusalRecord): void {
    this.refusals.push(refusal);
  }
}

export interface TestWorker {
  worker: SimulatedWorker;
  port: number;
  url: string;
}

export async function startWorker(settings: Partial<SimulatorSettings> = {}, port = 0): Promise<TestWorker> {
  const worker = new SimulatedWorker({ models: ["m"], stepMs: 2, prefillTokensPerSecond: 100_000, ...settings });
  const bound = await worker.listen(port);
  return { worker, port: bound, url: `http://127.0.0.1:${bound}` };
}

export interface Stack extends Running {
  recording: Recording;
  /** Waits until nothing is in flight any more, as far as the handler knows. */
  settled(): Promise<void>;
}

/** The whole product in this process, in front of the given workers, with a real Envoy. */
export async function startStack(version: EnvoyVersion, flags: Partial<UpFlags>): Promise<Stack> {
  const recording = new Recording();
  const running = await up(
    {
      listen: { address: "127.0.0.1", port: await freePort() },
      admin: { address: "127.0.0.1", port: 0 },
      maxBody: 32 << 20,
      debugHeaders: true,
      scrapeInterval: 100,
      concurrency: 1,
      envoy: envoyPath(version),
      explain: 0,
      ...flags,
    },
    pino({ level: "silent" }),
    recording,
  );
  return { ...running, recording, settled: () => eventually(() => running.handler.service.flights.size === 0) };
}

/** Waits until a condition holds; fails loudly when it never does. */
export async function eventually(condition: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`did not come true within ${timeoutMs} ms: ${condition}`);
    await pause(10);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Writes resources to a file of its own; returns its path. */
export function resourceFile(yaml: string, name = "resources.yaml"): string {
  const path = join(mkdtempSync(join(tmpdir(), "kinference-test-")), name);
  writeFileSync(path, yaml);
  return path;
}

/** A pool with its endpoints in YAML, as a user would write it. */
export function poolYaml(
  name: string,
  namespace: string,
  workers: readonly TestWorker[],
  failureMode = "FailClose",
): string {
  const endpoints = workers.map(
    ({ port }, i) => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}-${i}, namespace: ${namespace}, labels: { kinference.buoyant.io/inference-pool: ${name} } }
addressType: IPv4
endpoints: [{ addresses: ["127.0.0.1"], targetRef: { name: ${name}-${i} } }]
ports: [{ port: ${port} }]
`,
  );
  return `---
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: { name: ${name}, namespace: ${namespace} }
spec:
  selector: { matchLabels: { app: ${name} } }
  targetPorts: [{ number: 8000 }]
  endpointPickerRef: { name: kinference, failureMode: ${failureMode} }
${endpoints.join("")}`;
}

export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  json: Record<string, unknown>;
}

export async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Reply> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
  });
  const text = await response.text();
  let json: Record<string, unknown> = {};
  try {
    json = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // A test that wants JSON will see that there is none.
  }
  return { status: response.status, headers: response.headers, text, json };
}

export function chat(url: string, content: string, more: Record<string, unknown> = {}): Promise<Reply> {
  return post(`${url}/v1/chat/completions`, {
    model: "m",
    max_tokens: 4,
    messages: [{ role: "user", content }],
    ...more,
  });
}
