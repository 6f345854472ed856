import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnvoyVersion } from "./version.ts";

/** A running Envoy on this machine. */
export interface EnvoyProcess {
  /** `http://...` of its admin interface. */
  adminUrl: string;
  /** Resolves when it has exited, with its code. */
  exited: Promise<number | null>;
  stop(): Promise<void>;
}

/** Asks an Envoy for its version. Throws with what to do if there is none. */
export function readEnvoyVersion(binary: string): { major: number; minor: number; text: string } {
  let output: string;
  try {
    output = execFileSync(binary, ["--version"], { encoding: "utf8" });
  } catch (error) {
    throw new Error(
      `cannot run Envoy at ${binary} (${(error as Error).message.split("\n")[0]}); run \`make envoy\`, or set ENVOY to the path of one`,
    );
  }
  const version = parseEnvoyVersion(output);
  if (version === undefined) throw new Error(`${binary} --version does not look like Envoy's: ${output.trim()}`);
  return version;
}

export interface EnvoyOptions {
  /** Worker threads; default: one for each core. */
  concurrency?: number;
  logLevel?: string;
  /** Listeners that must have their port before Envoy counts as serving. */
  listeners?: readonly string[];
}

/** Starts Envoy on the files of a folder. Resolves when it serves; rejects with its last words if it exits before. */
export async function startEnvoy(binary: string, folder: string, options: EnvoyOptions = {}): Promise<EnvoyProcess> {
  const adminFile = join(folder, "admin.address");
  const child = spawn(
    binary,
    [
      "-c",
      join(folder, "bootstrap.json"),
      "--admin-address-path",
      adminFile,
      "-l",
      options.logLevel ?? "warning",
      "--disable-hot-restart",
    ].concat(options.concurrency === undefined ? [] : ["--concurrency", String(options.concurrency)]),
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const lastWords: string[] = [];
  child.stderr.on("data", (chunk: Buffer) => {
    lastWords.push(chunk.toString());
    if (lastWords.length > 50) lastWords.shift();
  });
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  const early = exited.then((code) => {
    throw new Error(
      `Envoy exited with ${code}: ${lastWords.join("").split("\n").filter(Boolean).slice(-8).join("\n")}`,
    );
  });
  // Only an exit before readiness is an error to report here.
  early.catch(() => {});
  const adminUrl = await Promise.race([waitForAdmin(adminFile), early]);
  await Promise.race([waitUntilLive(adminUrl), early]);
  const missing = await missingListeners(adminUrl, options.listeners ?? []);
  if (missing.length > 0) {
    await stop(child, exited);
    throw new Error(`Envoy cannot listen for ${missing.join(", ")}: ${bindErrors(lastWords.join(""))}`);
  }
  return { adminUrl, exited, stop: () => stop(child, exited) };
}

async function waitForAdmin(file: string): Promise<string> {
  for (;;) {
    const address = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
    if (address !== "") return `http://${address}`;
    await pause(20);
  }
}

async function waitUntilLive(adminUrl: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${adminUrl}/ready`).catch(() => undefined);
    if (answer?.status === 200) return;
    await pause(20);
  }
}

/** Envoy goes live even if a listener got no port; then clients would wait for ever, or talk to somebody else. */
async function missingListeners(adminUrl: string, wanted: readonly string[]): Promise<string[]> {
  for (let tries = 0; ; tries++) {
    const answer = await fetch(`${adminUrl}/listeners?format=json`);
    const { listener_statuses = [] } = (await answer.json()) as { listener_statuses?: { name: string }[] };
    const missing = wanted.filter((name) => !listener_statuses.some((listener) => listener.name === name));
    if (missing.length === 0 || tries === 50) return missing;
    await pause(20);
  }
}

function bindErrors(log: string): string {
  const reasons = log.match(/cannot bind '[^']+': .*|Address already in use/g) ?? [];
  return [...new Set(reasons)].join("; ") || "see Envoy's log";
}

async function stop(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 3000);
  await exited;
  clearTimeout(timer);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
