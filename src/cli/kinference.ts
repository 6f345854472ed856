import { Command, Option } from "commander";
import { pino } from "pino";
import { warmUp } from "../handler/warm-up.ts";
import { buildSnapshot } from "../resources/snapshot.ts";
import { DEFAULT_SIMULATOR, SimulatedWorker } from "../simulator/worker-server.ts";
import { UsageError } from "./declared-resources.ts";
import { filesSource } from "./declared-source.ts";
import { addHandlerFlags, type HandlerFlags, handlerSettings } from "./handler-flags.ts";
import { HandlerProcess } from "./handler-process.ts";
import { kubernetesSource } from "./kubernetes-source.ts";
import { collect, parseAddress, parseNumber } from "./options.ts";
import { type UpFlags, up } from "./up.ts";

const log = pino(
  { level: process.env.LOG_LEVEL ?? "info", base: null, timestamp: pino.stdTimeFunctions.isoTime },
  pino.destination(2),
);

const program = new Command("kinference").description("An inference control plane for vLLM workers behind Envoy");

function addressOption(flag: string, description: string, fallback: string): Option {
  return new Option(`${flag} <address>`, description).argParser(parseAddress).default(parseAddress(fallback), fallback);
}

addHandlerFlags(program.command("up"))
  .description("run gateway, handler and Envoy on this machine")
  .addOption(addressOption("--listen", "where clients connect", "127.0.0.1:8080"))
  .addOption(addressOption("--admin", "metrics, live state, health", "127.0.0.1:9090"))
  .option("--envoy <path>", "the Envoy to run (default: $ENVOY, the installed one, or the one on the PATH)")
  .option("--concurrency <n>", "Envoy's worker threads (default: one for each core)", parseNumber)
  .action(async (flags: UpFlags) => {
    await warmUp();
    const running = await up(flags, log);
    log.info({ envoy: running.envoyVersion, admin: running.adminUrl }, "serving");
    process.on("SIGHUP", () => running.handler.reopenLog());
    console.log(`ready ${running.url}`);
    untilSignal(() => running.stop());
    const code = await running.exited;
    if (!stopping) {
      log.fatal({ code }, "Envoy exited");
      process.exit(1);
    }
  });

interface ServeFlags extends HandlerFlags {
  extProc: { address: string; port: number };
  admin: { address: string; port: number };
  fallbacks: number;
  kubernetes?: boolean;
  namespace?: string;
}

addHandlerFlags(program.command("serve"))
  .description("run the handler alone, as an endpoint picker (ext_proc) for somebody else's Envoy")
  .requiredOption("--ext-proc <address>", "where Envoy's ext_proc filter connects", parseAddress)
  .addOption(addressOption("--admin", "metrics, live state, health", "127.0.0.1:9090"))
  .option(
    "--kubernetes",
    "take resources from Kubernetes ($KUBECONFIG, or the Pod's own), and write their status there",
  )
  .option("--namespace <name>", "with --kubernetes: only this namespace (default: all)")
  .option("--fallbacks <n>", "further endpoints to name, for gateways that take a list", parseNumber, 0)
  .action(async (flags: ServeFlags) => {
    const source = flags.kubernetes === true ? await kubernetesSource(flags, log) : filesSource(flags, log);
    const handler = new HandlerProcess({
      snapshot: buildSnapshot([]),
      log,
      ...handlerSettings(flags, flags.fallbacks),
    });
    await handler.serveAdmin(flags.admin.address, flags.admin.port);
    untilSignal(async () => {
      await source.stop();
      await handler.close(30_000);
    });
    process.on("SIGHUP", () => handler.reopenLog());
    await Promise.all([warmUp(), source.start(handler)]);
    const port = await handler.service.listen(flags.extProc.address, flags.extProc.port);
    handler.setReady(true);
    console.log(`ready ${flags.extProc.address}:${port}`);
  });

program
  .command("simulate")
  .description("run a simulated vLLM worker: no GPU, the real APIs, scheduler and KV cache")
  .addOption(addressOption("--listen", "where it serves", "127.0.0.1:8000"))
  .option("--model <name>", "a model that it serves (repeatable)", collect)
  .option("--blocks <n>", "KV-cache blocks", parseNumber, DEFAULT_SIMULATOR.blocks)
  .option("--block-tokens <n>", "tokens in a block", parseNumber, DEFAULT_SIMULATOR.blockTokens)
  .option("--max-running <n>", "sequences that run at once", parseNumber, DEFAULT_SIMULATOR.maxRunning)
  .option(
    "--prefill <tokens/s>",
    "prompt tokens computed in a second",
    parseNumber,
    DEFAULT_SIMULATOR.prefillTokensPerSecond,
  )
  .option("--step <ms>", "time between tokens", parseNumber, DEFAULT_SIMULATOR.stepMs)
  .option("--seed <n>", "its answers follow from it", parseNumber, DEFAULT_SIMULATOR.seed)
  .action(async (flags) => {
    const { listen, model, blocks, blockTokens, maxRunning, prefill, step, seed } = flags;
    const worker = new SimulatedWorker({
      ...(model ? { models: model } : {}),
      blocks,
      blockTokens,
      maxRunning,
      prefillTokensPerSecond: prefill,
      stepMs: step,
      seed,
    });
    console.log(`ready http://${listen.address}:${await worker.listen(listen.port, listen.address)}`);
    untilSignal(() => worker.close());
  });

let stopping = false;
function untilSignal(stop: () => Promise<void>): void {
  const once = () => {
    if (stopping) process.exit(130);
    stopping = true;
    void stop().then(() => process.exit(0));
  };
  process.on("SIGINT", once);
  process.on("SIGTERM", once);
}

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof UsageError || process.env.LOG_LEVEL !== "debug" ? (error as Error).message : error);
  process.exit(2);
}
