import { configurationProblems } from "../handler/configuration.ts";
import { formatProblem, type LoadResult, loadFiles } from "../resources/files.ts";
import { referenceProblems } from "../resources/references.ts";
import { resourcesForWorkers } from "../resources/worker-flags.ts";

export interface ResourceFlags {
  worker?: string[];
  file?: string[];
  failOpen?: boolean;
}

/** Reads what the flags declare, checked as a whole. */
export function loadDeclared(flags: ResourceFlags): LoadResult {
  const workers = resourcesForWorkers(flags.worker ?? [], flags.failOpen === true);
  return loadFiles(flags.file ?? [], workers, [referenceProblems, configurationProblems]);
}

/** The problems of a refused configuration, a line each. */
export function problemLines(result: LoadResult): string[] {
  return result.ok ? [] : result.problems.map(formatProblem);
}

/** A mistake of the user's: its message is all there is to say. */
export class UsageError extends Error {}

/** As `loadDeclared`; mistakes are thrown for the user. */
export function declaredOrThrow(flags: ResourceFlags): Extract<LoadResult, { ok: true }> {
  const declared = loadDeclared(flags);
  if (!declared.ok) throw new UsageError(problemLines(declared).join("\n"));
  return declared;
}
