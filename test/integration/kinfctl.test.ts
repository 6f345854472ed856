import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import type { Simulation } from "../../src/analysis/simulate.ts";
import type { DecisionExplanation } from "../../src/telemetry/explanation.ts";
import {
  eventually,
  poolYaml,
  post,
  resourceFile,
  type Stack,
  startStack,
  startWorker,
  type TestWorker,
} from "../support/stack.ts";

// kinfctl as a user runs it, against the whole product with a real Envoy.

const KINFCTL = fileURLToPath(new URL("../../bin/kinfctl", import.meta.url));
const run = promisify(execFile);

interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

async function kinfctl(...args: string[]): Promise<Ran> {
  try {
    return { code: 0, ...(await run(KINFCTL, args)) };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}

const POLICY = `apiVersion: kinference.buoyant.io/v1alpha1
kind: InferencePolicy
metadata: { name: easy, namespace: inference }
spec:
  rules:
    - name: small
      matches: [{ model: large, tag: complexity-low }]
      route:
        consider: [{ models: { names: [small] } }]
        exclude: [{ name: not-b, drop: { backend: { name: workers-1 } } }]
    - name: no-secrets
      matches: [{ headers: [{ name: x-env, value: secret }] }]
      reject: { status: 451, code: secret, message: Not here. }
---
apiVersion: kinference.buoyant.io/v1alpha1
kind: InferenceModel
metadata: { name: large, namespace: inference }
spec: { price: { input: 2, output: 10 } }
---
apiVersion: kinference.buoyant.io/v1alpha1
kind: InferenceModel
metadata: { name: small, namespace: inference }
spec: { price: { input: 0.2, output: 1 } }
`;
/** The same without the first rule. */
const NEW_POLICY = POLICY.replace(/ {4}- name: small[\s\S]*?(?= {4}- name: no-secrets)/, "");

let stack: Stack;
let workers: TestWorker[];
const policy = resourceFile(POLICY, "policy.yaml");
const log = policy.replace("policy.yaml", "decisions.jsonl");

beforeAll(async () => {
  workers = [
    await startWorker({ models: ["small"] }),
    await startWorker({ models: ["small"] }),
    await startWorker({ models: ["large"] }),
  ];
  stack = await startStack("1.40", {
    file: [resourceFile(poolYaml("workers", "inference", workers)), policy],
    explain: 1,
    decisionLog: log,
    logHeader: ["x-env"],
  });
});
afterAll(async () => {
  await stack.stop();
  for (const { worker } of workers) await worker.close();
});

const ask = (content: string, headers: Record<string, string> = {}) =>
  post(
    `${stack.url}/v1/chat/completions`,
    { model: "large", max_tokens: 4, messages: [{ role: "user", content }] },
    headers,
  );
const HARD =
  "Prove that the halting problem is undecidable, then derive the consequences for static analysis step by step, with a formal definition of each term and a comparison of three proof techniques.";

test("explain --request-id: by the id that the client was given, with every candidate and why it lost", async () => {
  const reply = await ask("Say hello.");
  const id = reply.headers.get("x-request-id") ?? "";
  expect(id).not.toBe("");
  const { code, stdout } = await kinfctl("explain", "--request-id", id, "--server", stack.adminUrl, "-o", "json");
  expect(code).toBe(0);
  const { decision, considered, request } = JSON.parse(stdout) as DecisionExplanation;
  expect(decision).toMatchObject({ kind: "route", rule: "easy/small", model: "small", backend: "workers-0" });
  expect(considered).toEqual([
    expect.objectContaining({ backend: "workers-0", place: 1, rankedBy: "least PredictedTTFT" }),
    { model: "small", backend: "workers-1", type: "Local", lost: "dropped by not-b" },
  ]);
  expect(request.tags).toEqual({ "complexity-low": true });
  expect(stdout).not.toContain("Say hello");
});

test("explain -f: what would be decided now, without sending anything", async () => {
  const body = resourceFile(JSON.stringify({ model: "large", messages: [{ role: "user", content: "Hi" }] }), "r.json");
  const sent = stack.recording.decisions.length;
  const { stdout } = await kinfctl("explain", "-f", body, "--header", "x-env: secret", "--server", stack.adminUrl);
  expect(stdout).toContain("rule      easy/small");
  expect(stdout).toMatch(/^1 +workers-0 +Local +small +least PredictedTTFT/m);
  expect(stdout).toMatch(/^- +workers-1 +Local +small +dropped by not-b/m);
  expect(stack.recording.decisions.length).toBe(sent);
  const offline = await kinfctl("explain", "-f", body, "-p", policy, "--worker", "w=large", "--path", "/v1/nowhere");
  expect(offline).toMatchObject({ code: 2, stderr: expect.stringContaining("404 There is no API at /v1/nowhere") });
});

test("the decision log, replayed: what moves, and what it costs", async () => {
  for (let i = 0; i < 5; i++) await ask(`Say hello ${i}.`);
  for (let i = 0; i < 3; i++) await ask(`${HARD} (${i})`);
  await ask(HARD, { "x-env": "secret" });
  await stack.settled();
  const lines = () => readFileSync(log, "utf8").trimEnd().split("\n");
  // A decision and its outcome for each of the ten that were sent, and one that was refused.
  await eventually(() => lines().length >= 19, 15_000);
  const text = readFileSync(log, "utf8");
  expect(text).not.toContain("hello");
  expect(text).not.toContain("halting");

  const fresh = resourceFile(NEW_POLICY, "new.yaml");
  const { code, stdout } = await kinfctl("simulate", "--log", log, "--new", fresh, "-o", "json");
  expect(code).toBe(0);
  const { requests, same, before, after, moves, notes } = JSON.parse(stdout) as Simulation;
  expect({ requests, same }).toEqual({ requests: 10, same: 4 });
  expect(before).toMatchObject({ routed: 9, refused: 1, outside: 0 });
  expect(after).toMatchObject({ routed: 9, refused: 1, outside: 0 });
  expect(moves).toEqual([expect.objectContaining({ from: "small on workers", to: "large on workers", requests: 6 })]);
  // Of the six that move, each is ten times as dear.
  const moved = moves[0]?.costUsd ?? 0;
  expect(after.costUsd - before.costUsd).toBeCloseTo(moved, 12);
  const costOfOne = (6 * 0.2 + 4 * 1) / 1e6;
  expect(moved / 6).toBeGreaterThan(costOfOne);
  expect(notes).toEqual([]);

  const replayed = await kinfctl("simulate", "--log", log, "--old", policy, "--new", policy, "-o", "yaml");
  expect((parse(replayed.stdout) as Simulation).same).toBe(10);
});

test("status: a broken policy is refused, the last good one goes on, and everybody is told", async () => {
  const status = () => kinfctl("status", "--server", stack.adminUrl);
  expect((await status()).code).toBe(0);
  writeFileSync(policy, POLICY.replace("consider", "considr"));
  await eventually(async () => (await status()).code === 1, 20_000);
  const { stdout } = await status();
  expect(stdout).toMatch(/InferencePolicy +inference\/easy +no +yes +last good version/);
  expect(stdout).toMatch(
    /policy.yaml:9:9: spec.rules.0.route.considr: unknown field `considr`, did you mean `consider`\?/,
  );
  const metrics = await (await fetch(`${stack.adminUrl}/metrics`)).text();
  expect(metrics).toMatch(/kinference_resource_accepted\{[^}]*name="easy"[^}]*\} 0/);
  const reply = await ask("Say hello.");
  expect(reply.headers.get("x-kinference-rule")).toBe("easy/small");
  writeFileSync(policy, POLICY);
  await eventually(async () => (await status()).code === 0, 20_000);
});

test("top shows workers and the latest decisions", async () => {
  await ask("Say hello.");
  await stack.settled();
  const { stdout } = await kinfctl("top", "--once", "--server", stack.adminUrl);
  expect(stdout).toMatch(/^workers-0 +inference\/workers +healthy +small +0/m);
  expect(stdout).toMatch(/default +large +easy\/small +workers-0 +ok +\d+ ms$/m);
});

test("lint --server knows the models that workers serve", async () => {
  const file = resourceFile(POLICY.replace("names: [small]", "names: [smal]"), "p.yaml");
  const { code, stdout } = await kinfctl("lint", file, "--server", stack.adminUrl, "--strict");
  expect(code).toBe(1);
  expect(stdout).toContain(
    "p.yaml:9:40: warning: nobody is known to serve `smal`, did you mean `small`? [unknown-model]",
  );
});

test("test: cases that do not hold are named with their places", async () => {
  const file = policy.replace("policy.yaml", "policy.test.yaml");
  writeFileSync(
    file,
    `defaults: { request: { model: large }, workers: { workers-0: { models: [small] } } }
cases:
  - name: right
    request: { tags: [complexity-low] }
    expect: { backend: workers-0 }
  - name: wrong
    expect: { backend: workers-0, status: 451 }
`,
  );
  const { code, stdout } = await kinfctl("test", file);
  expect(code).toBe(1);
  expect(stdout.replaceAll(file, "F").split("\n")).toEqual([
    "F:6:5: failed: wrong",
    '  F:7:24: expect.backend: expected "workers-0", got "refused 404 model_not_found"',
    "  F:7:43: expect.status: expected 451, got 404",
    "  decided default: 404 model_not_found",
    "F: 1 of 2 cases hold",
    "1 passed, 1 failed",
    "",
  ]);
});

test("exit codes: usage is 2, and says what is wrong", async () => {
  for (const [args, message] of [
    [["lnt"], "unknown command 'lnt'"],
    [["explain"], "one of -f REQUEST.json and --request-id ID"],
    [["status", "--server", "http://127.0.0.1:1"], "cannot be reached"],
    [["explain", "--request-id", "none", "--server", stack.adminUrl], "no decision none is remembered"],
    [["diff", policy, "/nowhere.yaml"], "cannot be read"],
    [["simulate", "--log", "/nowhere.jsonl", "--new", policy], "no such file"],
    [["lint", policy, "-o", "xml"], "Allowed choices are table, json, yaml"],
  ] as const) {
    const { code, stderr } = await kinfctl(...args);
    expect({ args, code, stderr }).toEqual({ args, code: 2, stderr: expect.stringContaining(message) });
  }
});

test("diff: rules and fields, and ways out of the cluster", async () => {
  const fresh = resourceFile(
    POLICY.replace("names: [small] }", "names: [small] }, backend: { type: Provider }").replace(
      "        exclude:",
      "        select: [{ minimize: Cost }]\n        exclude:",
    ),
    "new.yaml",
  );
  const { code, stdout } = await kinfctl("diff", policy, fresh, "--exit-code");
  expect(code).toBe(1);
  expect(stdout).toContain("changed InferencePolicy inference/easy rule small\n");
  expect(stdout).toContain('  route.select: (absent) -> [{"minimize":"Cost"}]\n');
  expect(stdout).toContain("can now leave the cluster: inference/easy/small to any provider\n");
  expect((await kinfctl("diff", policy, policy, "--exit-code")).code).toBe(0);
});

test("completion scripts are what the shells take", async () => {
  const { stdout } = await kinfctl("completion", "bash");
  const script = `${stdout}\nCOMP_WORDS=(kinfctl s) COMP_CWORD=1; _kinfctl; echo "\${COMPREPLY[@]}"
COMP_WORDS=(kinfctl lint --s) COMP_CWORD=2; _kinfctl; echo "\${COMPREPLY[@]}"
COMP_WORDS=(kinfctl lint -o y) COMP_CWORD=3; _kinfctl; echo "\${COMPREPLY[@]}"`;
  const completed = await run("bash", ["-c", script]);
  expect(completed.stdout).toBe("simulate status\n--server --strict\nyaml\n");
});
