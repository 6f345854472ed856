import { styleText } from "node:util";
import { type Command, Option } from "commander";
import { stringify } from "yaml";

/** Something that this program cannot work with: its message is all there is to say. Exit code 2. */
export class UsageError extends Error {}

export const EXIT = { ok: 0, problems: 1, usage: 2 } as const;

export type Format = "table" | "json" | "yaml";

export interface OutputFlags {
  output: Format;
}

export function addOutput(command: Command): Command {
  return command.addOption(
    new Option("-o, --output <format>", "how to print").choices(["table", "json", "yaml"]).default("table"),
  );
}

/** Prints data for programs, or lines for people. */
export function print(value: unknown, { output }: OutputFlags, lines: () => readonly string[]): void {
  if (output === "json") console.log(JSON.stringify(value, null, 2));
  else if (output === "yaml") process.stdout.write(stringify(value));
  else for (const line of lines()) console.log(line);
}

type Style = Parameters<typeof styleText>[0];

/** Colours, where the output is a terminal that wants them (`NO_COLOR`, `FORCE_COLOR`). */
export function paint(style: Style, text: string): string {
  return styleText(style, text);
}

/** Columns as wide as what is in them; colours take no width. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [header.map((cell) => paint("bold", cell)), ...rows];
  const widths = header.map((_, i) => Math.max(...all.map((row) => width(row[i] ?? ""))));
  return all.map((row) =>
    row
      .map((cell, i) => (i === row.length - 1 ? cell : cell + " ".repeat((widths[i] ?? 0) - width(cell) + 2)))
      .join("")
      .trimEnd(),
  );
}

const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");

function width(text: string): number {
  return text.replace(COLOUR, "").length;
}

export function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

/** US dollars, with as many digits as it takes to see something. */
export function dollars(usd: number): string {
  const digits = Math.abs(usd) >= 1 || usd === 0 ? 2 : 5;
  return `${usd < 0 ? "-" : ""}$${Math.abs(usd).toFixed(digits)}`;
}
