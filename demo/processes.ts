import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const CLI = fileURLToPath(new URL("../bin/kinference", import.meta.url));
const running = new Set<ChildProcess>();

/** Runs `kinference ...` until the demo ends. Resolves when it prints that it is ready. */
export function kinference(...args: string[]): Promise<void> {
  const child = spawn(CLI, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, LOG_LEVEL: "warn" } });
  running.add(child);
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors = (errors + chunk).slice(-4000);
  });
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => {
      running.delete(child);
      reject(new Error(`kinference ${args[0]} exited with ${code}: ${errors}`));
    });
    child.stdout.on("data", (chunk: Buffer) => chunk.toString().includes("ready ") && resolve());
  });
}

export async function stopAll(): Promise<void> {
  await Promise.all(
    [...running].map((child) => {
      child.removeAllListeners("exit");
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      return exited;
    }),
  );
}
