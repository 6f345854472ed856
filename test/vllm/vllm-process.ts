import { type ChildProcess, spawn } from "node:child_process";
import { freePort } from "../support/ports.ts";

/** A real vLLM, started by the command in `$VLLM_SERVE` with the port as its last argument. */
export interface VllmProcess {
  url: string;
  stop(): Promise<void>;
}

export function vllmCommand(): string {
  const command = process.env.VLLM_SERVE;
  if (!command) throw new Error("set VLLM_SERVE to a command that serves vLLM on the port given as its last argument");
  return command;
}

/** Resolves when it serves. Loading takes half a minute or more. */
export async function startVllm(env: Record<string, string>): Promise<VllmProcess> {
  const port = await freePort();
  const child = spawn("/bin/sh", ["-c", `exec ${vllmCommand()} ${port}`], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => output.push(chunk.toString()));
  const url = `http://127.0.0.1:${port}`;
  for (let i = 0; i < 600; i++) {
    if (child.exitCode !== null) throw new Error(`vLLM exited with ${child.exitCode}: ${output.join("").slice(-3000)}`);
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    if (answer?.status === 200) return { url, stop: () => stop(child) };
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  await stop(child);
  throw new Error(`vLLM did not become ready: ${output.join("").slice(-3000)}`);
}

async function stop(child: ChildProcess): Promise<void> {
  const exited = new Promise((resolve) => child.once("exit", resolve));
  if (child.exitCode !== null || child.pid === undefined) return;
  process.kill(-child.pid, "SIGKILL");
  await exited;
}
