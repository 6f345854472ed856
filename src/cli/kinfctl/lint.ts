import type { Command } from "commander";
import type { Finding, Severity } from "../../analysis/finding.ts";
import { lint } from "../../analysis/lint.ts";
import { knownNames } from "../../analysis/names.ts";
import type { Locate } from "../../resources/files.ts";
import { collect } from "../options.ts";
import { AdminClient } from "./admin-client.ts";
import { load } from "./declared.ts";
import { addOutput, count, EXIT, type OutputFlags, paint, print } from "./output.ts";

interface LintFlags extends OutputFlags {
  server?: string;
  model?: string[];
  strict?: boolean;
}

/** A finding or a mistake, as printed. */
export interface Line {
  severity: Severity;
  file: string;
  line: number;
  column: number;
  code: string;
  message: string;
}

export function addLint(program: Command): void {
  addOutput(program.command("lint"))
    .description("check files in schema and meaning, and show by which ways requests can leave the cluster")
    .argument("<paths...>", "files or folders of what is declared")
    .option("--server <url>", "ask a running handler which models and workers there are")
    .option(
      "--model <name>",
      "a model that workers serve; with this or --server, all others are unknown (repeatable)",
      collect,
    )
    .option("--strict", "warnings count as errors")
    .action(async (paths: string[], flags: LintFlags) => {
      const lines = await linted(paths, flags);
      const [errors, warnings] = [countOf(lines, "error"), countOf(lines, "warning")];
      print(lines, flags, () => [
        ...lines.map(inWords),
        `${count(errors, "error")}, ${count(warnings, "warning")}, ${count(countOf(lines, "info"), "way")} out of the cluster`,
      ]);
      if (errors > 0 || (flags.strict === true && warnings > 0)) process.exitCode = EXIT.problems;
    });
}

export async function linted(paths: readonly string[], flags: Pick<LintFlags, "server" | "model">): Promise<Line[]> {
  const loaded = load(paths);
  if (!loaded.ok) {
    return loaded.problems.map(({ file, line, column, message }) => ({
      severity: "error",
      file,
      line,
      column,
      code: "invalid",
      message,
    }));
  }
  const known = knownNames(loaded.snapshot, await served(flags));
  return lint(loaded.snapshot, known).map((finding) => lineOf(finding, loaded.locate));
}

async function served({
  server,
  model,
}: Pick<LintFlags, "server" | "model">): Promise<{ models: string[]; workers: string[] } | undefined> {
  if (server === undefined) return model && { models: model, workers: [] };
  const { workers } = await new AdminClient(server).state();
  return {
    models: [...(model ?? []), ...workers.flatMap((worker) => worker.models)],
    workers: workers.map((worker) => worker.name),
  };
}

function lineOf({ severity, code, object, path, message }: Finding, locate: Locate): Line {
  const { file, line, column } = locate(object, path) ?? { file: object.metadata.name, line: 1, column: 1 };
  return { severity, file, line, column, code, message };
}

const STYLES = { error: "red", warning: "yellow", info: "cyan" } as const;

function inWords({ severity, file, line, column, code, message }: Line): string {
  return `${file}:${line}:${column}: ${paint(STYLES[severity], severity)}: ${message} [${code}]`;
}

function countOf(lines: readonly Line[], severity: Severity): number {
  return lines.filter((line) => line.severity === severity).length;
}
