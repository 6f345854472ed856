import type { Command } from "commander";
import { type Change, type Difference, diffSnapshots } from "../../analysis/diff.ts";
import { loadOrFail } from "./declared.ts";
import { addOutput, EXIT, type OutputFlags, paint, print } from "./output.ts";

interface DiffFlags extends OutputFlags {
  exitCode?: boolean;
}

export function addDiff(program: Command): void {
  addOutput(program.command("diff"))
    .description("what differs in meaning between two files or folders: rules, fields, ways out of the cluster")
    .argument("<old>", "what is declared now")
    .argument("<new>", "what is to be declared")
    .option("--exit-code", "end with 1 when anything differs")
    .action((old: string, fresh: string, flags: DiffFlags) => {
      const difference = diffSnapshots(loadOrFail([old]).snapshot, loadOrFail([fresh]).snapshot);
      print(difference, flags, () => inWords(difference));
      if (flags.exitCode === true && difference.changes.length > 0) process.exitCode = EXIT.problems;
    });
}

const STYLES = { added: "green", removed: "red", changed: "yellow", moved: "yellow" } as const;

function inWords({ changes, leaves }: Difference): string[] {
  if (changes.length === 0) return ["nothing differs"];
  const value = (one: unknown) => (one === undefined ? "(absent)" : JSON.stringify(one));
  const lines = (change: Change) => [
    `${paint(STYLES[change.change], change.change)} ${change.what}`,
    ...change.fields.map(({ path, before, after }) => `  ${path}: ${value(before)} -> ${value(after)}`),
  ];
  return [
    ...changes.flatMap(lines),
    ...leaves.gained.map((way) => `${paint("red", "can now leave the cluster")}: ${way}`),
    ...leaves.lost.map((way) => `${paint("green", "can no longer leave the cluster")}: ${way}`),
  ];
}
