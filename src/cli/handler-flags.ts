import type { Command } from "commander";
import { DEFAULT_HANDLER, type HandlerSettings } from "../handler/settings.ts";
import type { ResourceFlags } from "./declared-resources.ts";
import { collect, parseBytes, parseNumber, parseShare } from "./options.ts";

/** Flags of the handler, the same wherever it runs. */
export interface HandlerFlags extends ResourceFlags {
  maxBody: number;
  allowPath?: string[];
  debugHeaders?: boolean;
  scrapeInterval?: number;
  trustHeader?: string[];
  decisionLog?: string;
  explain: number;
  logHeader?: string[];
}

export function addHandlerFlags(command: Command): Command {
  return command
    .option("--worker <url>", "a vLLM worker, for example http://gpu1:8000 (repeatable)", collect)
    .option(
      "-f, --file <path>",
      "resources: a YAML or JSON file, or a folder of them (repeatable; reloaded when changed)",
      collect,
    )
    .option("--fail-open", "when the handler is down, let requests through to any worker of --worker")
    .option("--max-body <bytes>", "largest request body", parseBytes, DEFAULT_HANDLER.maxBodyBytes)
    .option(
      "--allow-path <path>",
      "a further path to let through to any worker, unread by policies (repeatable)",
      collect,
    )
    .option(
      "--trust-header <name>",
      "believe this header when it names a tenant: only where a gateway in front sets it (repeatable)",
      collect,
    )
    .option("--debug-headers", "say in response headers who served a request, and why")
    .option("--decision-log <file>", "append explained decisions as JSON lines, without prompt text")
    .option(
      "--explain <share>",
      "share of decisions that are explained, 0 to 1; a few a second always are",
      parseShare,
      0,
    )
    .option("--log-header <name>", "a request header whose value explanations carry (repeatable)", collect)
    .option("--scrape-interval <ms>", "between two scrapes of a worker", parseNumber);
}

/** What the flags say to the handler. */
export function handlerSettings(flags: HandlerFlags, foreignFallbacks: number) {
  const settings: HandlerSettings = {
    maxBodyBytes: flags.maxBody,
    allowedPaths: flags.allowPath ?? [],
    debugHeaders: flags.debugHeaders === true,
    foreignFallbacks,
    trustedHeaders: lowerCase(flags.trustHeader),
    loggedHeaders: lowerCase(flags.logHeader),
  };
  return {
    ...settings,
    explainShare: flags.explain,
    ...(flags.decisionLog === undefined ? {} : { decisionLog: flags.decisionLog }),
    ...(flags.scrapeInterval === undefined ? {} : { scrapeIntervalMs: flags.scrapeInterval }),
  };
}

function lowerCase(names: readonly string[] = []): string[] {
  return names.map((name) => name.toLowerCase());
}
