import { Command, CommanderError } from "commander";
import { addCompletion } from "./kinfctl/completion.ts";
import { addDiff } from "./kinfctl/diff.ts";
import { addExplain } from "./kinfctl/explain.ts";
import { addLint } from "./kinfctl/lint.ts";
import { EXIT, UsageError } from "./kinfctl/output.ts";
import { addSimulate } from "./kinfctl/simulate.ts";
import { addStatus } from "./kinfctl/status.ts";
import { addTest } from "./kinfctl/test.ts";
import { addTop } from "./kinfctl/top.ts";

const program = new Command("kinfctl")
  .description("Write, check, explain and try out inference policies")
  .exitOverride()
  .showSuggestionAfterError()
  .addHelpText(
    "after",
    "\nExit codes: 0 all is well; 1 problems were found; 2 wrong usage, or something cannot be read or reached.",
  );
for (const add of [addLint, addTest, addExplain, addSimulate, addDiff, addStatus, addTop, addCompletion]) add(program);
for (const command of program.commands) command.exitOverride();

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  else if (error instanceof UsageError || isFileError(error)) {
    console.error(`error: ${(error as Error).message}`);
    process.exitCode = EXIT.usage;
  } else throw error;
}

/** A file that is not there, or may not be read. */
function isFileError(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}
