import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { parseNumber } from "../options.ts";
import { AdminClient, DEFAULT_SERVER, type LiveState } from "./admin-client.ts";
import { addOutput, type OutputFlags, paint, print, table } from "./output.ts";

interface TopFlags extends OutputFlags {
  server: string;
  once?: boolean;
  interval: number;
}

const CLEAR = "\u001b[H\u001b[J";

export function addTop(program: Command): void {
  addOutput(program.command("top"))
    .description("what the workers do: load, KV cache, health, and the latest decisions")
    .option("--server <url>", "admin address of a handler", DEFAULT_SERVER)
    .option("--once", "print once and end; so it is where the output is no terminal")
    .option("--interval <s>", "seconds between two looks", parseNumber, 2)
    .action(async (flags: TopFlags) => {
      const client = new AdminClient(flags.server);
      const follows = flags.once !== true && process.stdout.isTTY && flags.output === "table";
      do {
        const state = await client.state();
        if (follows) process.stdout.write(CLEAR);
        print(state, flags, () => inWords(state));
        if (follows) await sleep(flags.interval * 1000);
      } while (follows);
    });
}

const LATEST = 10;

function inWords({ workers, inFlight, recent }: LiveState): string[] {
  const unknown = (value: number | undefined | null) => (value === undefined || value === null ? "?" : String(value));
  return [
    `${inFlight} requests in flight`,
    "",
    ...table(
      ["WORKER", "POOL", "HEALTH", "MODELS", "IN FLIGHT", "QUEUED", "RUNNING", "KV USED", "CACHED TOKENS", "ERRORS"],
      workers.map((worker) => [
        worker.name,
        worker.pool,
        worker.healthy ? paint("green", "healthy") : paint("red", worker.reason || "unhealthy"),
        worker.models.join(","),
        String(worker.inFlight),
        unknown(worker.queuedPrompts),
        unknown(worker.runningPrompts),
        worker.kvCacheUsage === null ? "?" : `${Math.round(worker.kvCacheUsage * 100)} %`,
        `${worker.believedCachedTokens}/${worker.cacheCapacityTokens}`,
        `${Math.round(worker.errorRate * 100)} %`,
      ]),
    ),
    "",
    ...table(
      ["TIME", "TENANT", "ASKED FOR", "RULE", "BACKEND", "OUTCOME", "TTFT"],
      recent
        .slice(-LATEST)
        .map(({ decision, outcome }) => [
          decision.at.slice(11, 19),
          decision.tenant,
          decision.requestedModel,
          decision.rule,
          decision.backend,
          outcome === undefined ? "under way" : outcome.outcome,
          outcome?.ttftMs === undefined ? "-" : `${Math.round(outcome.ttftMs)} ms`,
        ]),
    ),
  ];
}
