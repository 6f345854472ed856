import { existsSync } from "node:fs";
import type { Command } from "commander";
import { readDecisionLog } from "../../analysis/read-decision-log.ts";
import { type Simulation, simulate, type Totals } from "../../analysis/simulate.ts";
import { collect } from "../options.ts";
import { loadOrFail } from "./declared.ts";
import { addOutput, count, dollars, type OutputFlags, print, table, UsageError } from "./output.ts";

interface SimulateFlags extends OutputFlags {
  old?: string[];
  new: string[];
  log: string;
}

export function addSimulate(program: Command): void {
  addOutput(program.command("simulate"))
    .description("replay a decision log through other policies: what moves, and the difference in cost and TTFT")
    .requiredOption("--log <file>", "a decision log (`kinference up --decision-log FILE --explain 1`)")
    .requiredOption("--new <path>", "what is to be declared (repeatable)", collect)
    .option("--old <path>", "what is declared now (repeatable); without it: what was decided then", collect)
    .action(async (flags: SimulateFlags) => {
      if (!existsSync(flags.log)) throw new UsageError(`${flags.log}: no such file`);
      const before = flags.old && loadOrFail(flags.old).snapshot;
      const after = loadOrFail(flags.new).snapshot;
      const { decisions, unreadable } = await readDecisionLog(flags.log);
      if (decisions.length === 0)
        throw new UsageError(`${flags.log}: has no explained decisions (--explain 1 has all)`);
      const simulation = simulate(decisions, before, after);
      if (unreadable > 0) simulation.notes.push(`${count(unreadable, "line")} of the log could not be read`);
      print(simulation, flags, () => inWords(simulation));
    });
}

function inWords({ requests, same, before, after, moves, notes }: Simulation): string[] {
  const row = (name: string, { routed, refused, outside, costUsd, meanTtftMs }: Totals) => [
    name,
    String(routed),
    String(refused),
    String(outside),
    dollars(costUsd),
    meanTtftMs === undefined ? "-" : `${meanTtftMs.toFixed(1)} ms`,
  ];
  const percent = ((100 * (requests - same)) / requests).toFixed(1);
  return [
    `${count(requests, "request")}: ${requests - same} would go elsewhere (${percent} %)`,
    "",
    ...table(
      ["", "ROUTED", "REFUSED", "TO PROVIDERS", "COST", "PREDICTED TTFT"],
      [row("before", before), row("after", after)],
    ),
    ...(moves.length === 0 ? [] : ["", ...moveTable(moves)]),
    ...(notes.length === 0 ? [] : ["", ...notes.map((note) => `note: ${note}`)]),
  ];
}

function moveTable(moves: Simulation["moves"]): string[] {
  return table(
    ["REQUESTS", "FROM", "TO", "COST", "PREDICTED TTFT", "EXAMPLE"],
    moves.map(({ requests, from, to, costUsd, ttftMs, example }) => [
      String(requests),
      from,
      to,
      signed(costUsd, dollars(Math.abs(costUsd))),
      ttftMs === undefined ? "-" : signed(ttftMs, `${Math.abs(ttftMs).toFixed(1)} ms`),
      example,
    ]),
  );
}

function signed(value: number, text: string): string {
  return `${value < 0 ? "-" : "+"}${text}`;
}
