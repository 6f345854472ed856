// Full rate through the whole stack, to find what fails or grows: node benchmarks/full-rate.ts [--seconds 60] [--connections 64]
// Client and instant workers in this process; Envoy and handler as `kinference up` runs them. Prints a line every 10 s.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Pool } from "undici";
import { freePort } from "../test/support/ports.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "60" }, connections: { type: "string", default: "64" } },
});
const seconds = Number(values.seconds);
const connections = Number(values.connections);

const ANSWER = JSON.stringify({
  id: "x",
  object: "chat.completion",
  created: 0,
  model: "instant",
  choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 40, completion_tokens: 2, total_tokens: 42, prompt_tokens_details: { cached_tokens: 0 } },
});

async function instantWorker(): Promise<number> {
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    request.resume();
    if (request.url === "/v1/models") response.end(JSON.stringify({ object: "list", data: [{ id: "instant" }] }));
    else if (request.method === "GET") response.end("");
    else response.writeHead(200, { "content-type": "application/json" }).end(ANSWER);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

function startUp(workers: number[], port: number, admin: number): Promise<ChildProcess> {
  const flags = workers.flatMap((worker) => ["--worker", `http://127.0.0.1:${worker}`]);
  const cli = fileURLToPath(new URL("../bin/kinference", import.meta.url));
  const child = spawn(cli, ["up", ...flags, "--listen", `127.0.0.1:${port}`, "--admin", `127.0.0.1:${admin}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`kinference up exited with ${code}`)));
    child.stdout.on("data", (chunk: Buffer) => chunk.toString().includes("ready ") && resolve(child));
  });
}

function residentMiB(pid: number): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024);
}

const workers = await Promise.all([instantWorker(), instantWorker()]);
const [port, admin] = [await freePort(), await freePort()];
const up = await startUp(workers, port, admin);
const pool = new Pool(`http://127.0.0.1:${port}`, { connections, pipelining: 1 });
const failures = new Map<string, number>();
let done = 0;
const latencies: number[] = [];
const end = performance.now() + seconds * 1000;

async function client(id: number): Promise<void> {
  for (let i = 0; performance.now() < end; i++) {
    const content = `client ${id} asks question ${i}: ${"what is the answer to this? ".repeat(4)}`;
    const body = JSON.stringify({ model: "instant", messages: [{ role: "user", content }], max_tokens: 4 });
    const started = performance.now();
    let result: string;
    try {
      const response = await pool.request({
        path: "/v1/chat/completions",
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      const text = await response.body.text();
      result = response.statusCode === 200 && text === ANSWER ? "ok" : `${response.statusCode} ${text.slice(0, 100)}`;
    } catch (error) {
      result = String(error);
    }
    if (result !== "ok") failures.set(result, (failures.get(result) ?? 0) + 1);
    if (i % 16 === 0) latencies.push(performance.now() - started);
    done++;
  }
}

const started = performance.now();
const report = setInterval(() => {
  const elapsed = (performance.now() - started) / 1000;
  const failed = [...failures.values()].reduce((a, b) => a + b, 0);
  console.log(
    JSON.stringify({
      seconds: Math.round(elapsed),
      requests: done,
      perSecond: Math.round(done / elapsed),
      failed,
      handlerMiB: residentMiB(up.pid ?? 0),
    }),
  );
}, 10_000);
await Promise.all(Array.from({ length: connections }, (_, id) => client(id)));
clearInterval(report);
await new Promise((resolve) => setTimeout(resolve, 500));
const state = (await (await fetch(`http://127.0.0.1:${admin}/state`)).json()) as {
  inFlight: number;
  workers: { inFlight: number }[];
};
const leaked = state.inFlight + state.workers.reduce((sum, worker) => sum + worker.inFlight, 0);
latencies.sort((a, b) => a - b);
const percentile = (p: number) => Number(latencies[Math.floor(p * (latencies.length - 1))]?.toFixed(2));
console.log(
  JSON.stringify({
    requests: done,
    perSecond: Math.round((done / (performance.now() - started)) * 1000),
    failed: Object.fromEntries(failures),
    leakedReservations: leaked,
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    handlerMiB: residentMiB(up.pid ?? 0),
  }),
);
up.removeAllListeners("exit");
up.kill("SIGTERM");
await pool.close();
process.exit(failures.size === 0 && leaked === 0 ? 0 : 1);
