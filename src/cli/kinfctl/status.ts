import type { Command } from "commander";
import { AdminClient, DEFAULT_SERVER } from "./admin-client.ts";
import { addOutput, count, EXIT, type OutputFlags, paint, print, table } from "./output.ts";

interface StatusFlags extends OutputFlags {
  server: string;
}

export function addStatus(program: Command): void {
  addOutput(program.command("status"))
    .description("whether what is declared is in use; if not, why, and what goes on in its place")
    .option("--server <url>", "admin address of a handler", DEFAULT_SERVER)
    .action(async (flags: StatusFlags) => {
      const { resources, workers } = await new AdminClient(flags.server).state();
      const refused = resources.filter(({ accepted }) => !accepted);
      const healthy = workers.filter((worker) => worker.healthy).length;
      print({ resources, workers: { healthy, all: workers.length } }, flags, () => [
        ...table(
          ["KIND", "NAME", "ACCEPTED", "RESOLVED", "PROGRAMMED"],
          resources.map(({ kind, namespace, name, accepted, resolved, programmed }) => [
            kind,
            namespace === "" ? name : `${namespace}/${name}`,
            yesNo(accepted),
            yesNo(resolved),
            accepted || !programmed ? yesNo(programmed) : "last good version",
          ]),
        ),
        ...refused.flatMap(({ problems }) => problems.map((problem) => `${paint("red", "error")}: ${problem}`)),
        `${healthy} of ${count(workers.length, "worker")} healthy`,
      ]);
      if (refused.length > 0) process.exitCode = EXIT.problems;
    });
}

function yesNo(value: boolean): string {
  return value ? paint("green", "yes") : paint("red", "no");
}
