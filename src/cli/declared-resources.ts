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
