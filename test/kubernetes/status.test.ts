import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { parse } from "yaml";
import type { EnvoyProcess } from "../../src/gateway/envoy/process.ts";
import { BreakableProxy } from "../support/breakable-proxy.ts";
import { startForeignEnvoy } from "../support/foreign-envoy.ts";
import { freePort } from "../support/ports.ts";
import { chat, envoyPath, eventually, type Reply, startWorker, type TestWorker } from "../support/stack.ts";
import { ApiServer } from "./api-server.ts";

const BIN = fileURLToPath(new URL("../../bin/", import.meta.url));
const api = new ApiServer();

/** `kinference serve --kubernetes` with an Envoy before it, as a Pod would run it. */
class Handler {
  readonly admin: string;
  readonly log: { level: number; msg: string; object?: string }[] = [];
  readonly #extProc: number;
  readonly #namespace: string;
  readonly #kubeconfig: string;
  #process: ChildProcess | undefined;

  constructor(namespace: string, kubeconfig: string, admin: number, extProc: number) {
    this.admin = `http://127.0.0.1:${admin}`;
    this.#namespace = namespace;
    this.#kubeconfig = kubeconfig;
    this.#extProc = extProc;
  }

  async start(): Promise<void> {
    const address = this.admin.slice("http://".length);
    const flags = ["--kubernetes", "--namespace", this.#namespace, "--scrape-interval", "100", "--debug-headers"];
    const child = spawn(
      `${BIN}kinference`,
      ["serve", ...flags, "--ext-proc", `127.0.0.1:${this.#extProc}`, "--admin", address],
      { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, KUBECONFIG: this.#kubeconfig } },
    );
    this.#process = child;
    createInterface(child.stderr).on("line", (line) => this.log.push(JSON.parse(line)));
    await new Promise<void>((resolve, reject) => {
      createInterface(child.stdout).on("line", (line) => line.startsWith("ready") && resolve());
      child.once("exit", (code) => reject(new Error(`kinference exited with ${code}: ${JSON.stringify(this.log)}`)));
    });
  }

  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await exited;
  }

  async status(): Promise<string> {
    const child = spawn(`${BIN}kinfctl`, ["status", "--server", this.admin], { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    for await (const chunk of child.stdout) output += String(chunk);
    return output;
  }

  async metric(name: string): Promise<string[]> {
    const page = await (await fetch(`${this.admin}/metrics`)).text();
    return page.split("\n").filter((line) => line.startsWith(`${name}{`) && line.includes("guard"));
  }
}

let worker: TestWorker;
let namespace: string;
let handler: Handler;
let envoy: EnvoyProcess;
let url: string;
/** Between the handler and the API server. */
let connection: BreakableProxy;

beforeAll(async () => {
  await api.applyDefinitions();
  worker = await startWorker({ models: ["m", "small"] });
});
afterAll(() => worker?.worker.close());

beforeEach(async () => {
  namespace = await api.createNamespace();
  await api.apply(namespace, pool());
  await api.runningPod(namespace, "vllm-0", { app: "vllm" }, "127.0.0.1");
  const extProc = await freePort();
  connection = new BreakableProxy(api.address);
  const account = await api.handlerAccount(namespace, `https://127.0.0.1:${await connection.listen()}`);
  handler = new Handler(namespace, account, await freePort(), extProc);
  await handler.start();
  const listen = await freePort();
  envoy = await startForeignEnvoy(envoyPath("1.40"), listen, extProc);
  url = `http://127.0.0.1:${listen}`;
  await eventually(async () => (await ask("hello")).status === 200);
});
afterEach(async () => {
  await envoy?.stop();
  await handler?.stop();
  connection?.close();
  await api.deleteNamespace(namespace);
});

const pool = () => ({
  apiVersion: "inference.networking.k8s.io/v1",
  kind: "InferencePool",
  metadata: { name: "vllm" },
  spec: {
    selector: { matchLabels: { app: "vllm" } },
    targetPorts: [{ number: worker.port }],
    endpointPickerRef: { name: "kinference", port: { number: 9002 } },
  },
});
const policy = (rules: string, more = "") =>
  parse(`apiVersion: kinference.buoyant.io/v1alpha1
kind: InferencePolicy
metadata: { name: guard }
spec:
  ${more}
  rules: ${rules}`);
const GUARD = "[{ name: secrets, matches: [{ expression: 'model == \"m\"' }], reject: { message: not this model } }]";
const BROKEN = "[{ name: secrets, matches: [{ expression: 'model ==' }], reject: { message: not this model } }]";
const REFUSED = { status: 403, message: "not this model" };

const ask = (prompt: string) => chat(url, prompt, { max_tokens: 1 });
const refusal = ({ status, json }: Reply) => ({ status, message: (json.error as { message?: string })?.message });

test("a good policy is in use once its status says so", async () => {
  expect((await ask("before")).status).toBe(200);
  await api.apply(namespace, policy(GUARD));
  expect(await api.conditions(namespace, "InferencePolicy", "guard")).toEqual([
    "Accepted=True (Accepted)",
    "ResolvedRefs=True (ResolvedRefs)",
    "Programmed=True (Programmed)",
  ]);
  expect(refusal(await ask("after"))).toEqual(REFUSED);
  expect(await handler.status()).toContain(`${namespace}/guard  yes`);
});

test("a broken policy leaves the last good one in force and says so; applying the old file is the way back", async () => {
  await api.apply(namespace, policy(GUARD));
  await api.conditions(namespace, "InferencePolicy", "guard");
  await api.apply(namespace, policy(BROKEN));
  expect(await api.conditions(namespace, "InferencePolicy", "guard")).toEqual([
    "Accepted=False (Invalid)",
    "ResolvedRefs=Unknown (Invalid)",
    "Programmed=False (LastGoodVersion)",
  ]);
  expect(await api.message(namespace, "InferencePolicy", "guard", "Accepted")).toMatch(
    /^spec\.rules\.0\.matches\.0\.expression: /,
  );
  expect(await api.message(namespace, "InferencePolicy", "guard", "Programmed")).toBe(
    "generation 1, the last good one, goes on",
  );
  expect(refusal(await ask("still guarded"))).toEqual(REFUSED);
  expect(await handler.status()).toMatch(/guard +no +no +last good version\n.*error: spec\.rules\.0/);
  expect(await handler.metric("kinference_resource_accepted")).toEqual([expect.stringMatching(/ 0$/)]);
  expect(handler.log.filter(({ level, object }) => level === 50 && object === `${namespace}/guard`)).not.toEqual([]);

  await api.apply(namespace, policy(GUARD));
  expect(await api.conditions(namespace, "InferencePolicy", "guard")).toEqual([
    "Accepted=True (Accepted)",
    "ResolvedRefs=True (ResolvedRefs)",
    "Programmed=True (Programmed)",
  ]);
  expect((await api.get(namespace, "InferencePolicy", "guard")).status?.lastGoodVersion).toBeUndefined();
});

test("the last good version of a broken policy goes on after a restart", async () => {
  await api.apply(namespace, policy(GUARD));
  await api.conditions(namespace, "InferencePolicy", "guard");
  await api.apply(namespace, policy(BROKEN));
  await api.conditions(namespace, "InferencePolicy", "guard");
  await handler.stop();
  await handler.start();
  await eventually(async () => (await ask("guarded by the version before")).status === 403);
  expect(await handler.status()).toMatch(/guard +no +no +last good version/);
});

test("a policy that was in force and broke while nobody looked refuses until it is mended", async () => {
  await api.apply(namespace, policy(GUARD));
  await api.conditions(namespace, "InferencePolicy", "guard");
  await handler.stop();
  await api.apply(namespace, policy(BROKEN));
  await handler.start();
  await eventually(async () => (await ask("who knows")).status === 503);
  const { json } = await ask("who knows");
  expect((json.error as { code: string }).code).toBe("policy_invalid");
  expect((await api.conditions(namespace, "InferencePolicy", "guard")).at(-1)).toBe("Programmed=False (Refusing)");
  await handler.stop();
  await handler.start();
  await eventually(async () => (await ask("after another restart")).status === 503);
  await api.apply(namespace, policy(GUARD));
  await eventually(async () => (await ask("mended")).status === 403);
});

test("a policy that never was valid changes nothing", async () => {
  await api.apply(namespace, policy(BROKEN));
  expect(await api.conditions(namespace, "InferencePolicy", "guard")).toEqual([
    "Accepted=False (Invalid)",
    "ResolvedRefs=Unknown (Invalid)",
    "Programmed=False (Invalid)",
  ]);
  expect((await ask("as before")).status).toBe(200);
});

test("names that nothing has are told, and put right when the named thing comes", async () => {
  await api.apply(
    namespace,
    policy("[{ name: out, route: { select: [{ type: Local }, { type: Provider, order: [bedrock] }] } }]"),
  );
  expect((await api.conditions(namespace, "InferencePolicy", "guard"))[1]).toBe("ResolvedRefs=False (RefNotFound)");
  expect(await api.message(namespace, "InferencePolicy", "guard", "ResolvedRefs")).toBe(
    "spec.rules.0.route.select.1.order.0: no InferenceProvider is called `bedrock`",
  );
  const provider = parse(`apiVersion: kinference.buoyant.io/v1alpha1
kind: InferenceProvider
metadata: { name: bedrock }
spec: { type: OpenAI, credentialsRef: { name: key }, models: [{ name: m }] }`);
  await api.apply(namespace, provider);
  expect(await api.conditions(namespace, "InferenceProvider", "bedrock")).toEqual([
    "Accepted=True (Accepted)",
    "ResolvedRefs=False (RefNotFound)",
    "Programmed=False (RefNotFound)",
  ]);
  await api.core.createNamespacedSecret({
    namespace,
    body: { metadata: { name: "key" }, stringData: { apiKey: "secret-of-the-provider" } },
  });
  await eventually(
    async () =>
      (await api.conditions(namespace, "InferenceProvider", "bedrock")).at(-1) === "Programmed=True (Programmed)",
  );
  await eventually(
    async () => (await api.conditions(namespace, "InferencePolicy", "guard"))[1] === "ResolvedRefs=True (ResolvedRefs)",
  );
  const state = await (await fetch(`${handler.admin}/state`)).text();
  for (const page of [state, await handler.status(), JSON.stringify(handler.log)])
    expect(page).not.toContain("secret-of-the-provider");
});

test("workers are the ready Pods that the pool selects", async () => {
  await api.podReady(namespace, "vllm-0", false, "127.0.0.1");
  await eventually(async () => (await ask("nobody is ready")).status === 503);
  await api.podReady(namespace, "vllm-0", true, "127.0.0.1");
  await eventually(async () => (await ask("back")).status === 200);
  await api.runningPod(namespace, "other", { app: "other" }, "127.0.0.2");
  const reply = await ask("who serves");
  expect(reply.headers.get("x-kinference-worker")).toBe("vllm-0");
});

test("without the API server what was seen last stays in force; what changed meanwhile is taken over after it", async () => {
  await api.apply(namespace, policy(GUARD));
  await api.conditions(namespace, "InferencePolicy", "guard");
  connection.cut();
  await eventually(() => handler.log.some(({ msg }) => msg.startsWith("cannot be watched")));
  expect(refusal(await ask("guarded all the same"))).toEqual(REFUSED);
  await api.apply(namespace, policy(GUARD.replace("not this model", "another word")));
  await api.apply(namespace, { ...policy(BROKEN), metadata: { name: "late" } });
  connection.mend();
  await eventually(async () => refusal(await ask("again")).message === "another word", 20_000);
  expect((await api.conditions(namespace, "InferencePolicy", "guard")).at(-1)).toBe("Programmed=True (Programmed)");
  expect((await api.conditions(namespace, "InferencePolicy", "late")).at(-1)).toBe("Programmed=False (Invalid)");
});

test("the shipped role allows all that the handler does", async () => {
  await api.apply(namespace, policy(GUARD));
  await api.conditions(namespace, "InferencePolicy", "guard");
  expect(handler.log.filter(({ level }) => level >= 40)).toEqual([]);
});

test("a pool whose Pods cannot be listed holds up nothing else", async () => {
  // The API server takes any text as a label's name here, and refuses to look for it.
  const spec = { ...pool().spec, selector: { matchLabels: { "not a label": "x" } } };
  await api.apply(namespace, { ...pool(), metadata: { name: "odd" }, spec });
  await eventually(() => handler.log.some(({ level, msg }) => level === 40 && msg.startsWith("cannot be watched")));
  await api.apply(namespace, policy(GUARD));
  await eventually(async () => (await ask("guarded")).status === 403);
});

test("a status is written once, not over and over", async () => {
  await api.apply(namespace, policy(GUARD));
  await api.conditions(namespace, "InferencePolicy", "guard");
  const version = async () => (await api.get(namespace, "InferencePolicy", "guard")).metadata.resourceVersion;
  const before = await version();
  // A change elsewhere makes everything be judged again.
  await api.apply(namespace, { ...policy(GUARD), metadata: { name: "another" } });
  await api.conditions(namespace, "InferencePolicy", "another");
  expect(await version()).toBe(before);
});
