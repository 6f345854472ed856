import { configurationProblems } from "../../handler/configuration.ts";
import { type FileProblem, formatProblem, type LoadResult, type Locate, loadFiles } from "../../resources/files.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { UsageError } from "./output.ts";

/** Reads what files declare, checked in schema and meaning. */
export function load(paths: readonly string[]): LoadResult {
  // A policy may be read without the Secrets and pools that it will meet in the cluster: that is no mistake of its own.
  return loadFiles(paths, [], [configurationProblems]);
}

/** As `load`, for commands that can do nothing with files that have mistakes. */
export function loadOrFail(paths: readonly string[]): { snapshot: Snapshot; locate: Locate } {
  const loaded = load(paths);
  if (!loaded.ok) throw new UsageError(problemLines(loaded.problems).join("\n"));
  return loaded;
}

export function problemLines(problems: readonly FileProblem[]): string[] {
  return problems.map(formatProblem);
}
