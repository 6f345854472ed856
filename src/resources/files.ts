import { type FSWatcher, statSync, watch } from "node:fs";
import { join } from "node:path";
import { keyOf, type Resource } from "../api/resource.ts";
import { type Problem, validateResource } from "../api/validate.ts";
import { referenceProblems } from "./references.ts";
import { type Identity, identityOf, problemText } from "./resource-status.ts";
import { buildSnapshot, type Snapshot } from "./snapshot.ts";
import { listFiles, type Place, readDocuments } from "./yaml-documents.ts";

/** A mistake in a file, for its author. */
export interface FileProblem extends Place {
  message: string;
  /** The object with the mistake, where the file says which it is. */
  object?: Identity;
}

export type LoadResult = { ok: true; snapshot: Snapshot; locate: Locate } | { ok: false; problems: FileProblem[] };

/** Where in its file a part of an object is; undefined for objects that are in no file. */
export type Locate = (object: Resource, path: readonly (string | number)[]) => Place | undefined;

/** `file:line:column: message` */
export function formatProblem(problem: FileProblem): string {
  return `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`;
}

/** Further check of a snapshot that passed the schemas, by those who will use it. */
export type SnapshotCheck = (snapshot: Snapshot) => { object: Resource; problem: Problem }[];

interface Placed {
  object: Resource;
  locate(path: readonly (string | number)[], atKey?: boolean): Place;
}

/**
 * Reads YAML or JSON objects from files and folders (`.yaml`, `.yml`, `.json`, in name order) into a snapshot.
 * Any mistake anywhere refuses the whole: half a configuration is never used.
 * @param checks what is looked at once every object fits its schema
 */
export function loadFiles(
  paths: readonly string[],
  extra: readonly Resource[] = [],
  checks: readonly SnapshotCheck[] = [referenceProblems],
): LoadResult {
  const problems: FileProblem[] = [];
  const placed: Placed[] = [];
  for (const file of paths.flatMap(listFiles)) readObjects(file, placed, problems);
  if (problems.length > 0) return { ok: false, problems };
  const snapshot = buildSnapshot([...extra, ...placed.map((p) => p.object)]);
  const locate: Locate = (object, path) => placed.find((p) => p.object === object)?.locate(path);
  for (const { object, problem } of checks.flatMap((check) => check(snapshot))) {
    const place = locate(object, problem.path) ?? { file: keyOf(object), line: 1, column: 1 };
    problems.push({ ...place, message: problemText(problem), object: identityOf(object) });
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, snapshot, locate };
}

function readObjects(file: string, placed: Placed[], problems: FileProblem[]): void {
  const { documents, mistakes } = readDocuments(file);
  problems.push(...mistakes);
  for (const { value, locate } of documents) {
    const found = validateResource(value);
    if (found.length === 0) placed.push({ object: value as Resource, locate });
    const identity = declaredIdentity(value);
    for (const problem of found)
      problems.push({
        ...locate(problem.path, problem.atKey),
        message: problemText(problem),
        ...(identity === undefined ? {} : { object: identity }),
      });
  }
}

/** Who an object that is not valid means to be. */
function declaredIdentity(object: unknown): Identity | undefined {
  const { kind, metadata } = (object ?? {}) as { kind?: unknown; metadata?: { name?: unknown; namespace?: unknown } };
  if (typeof kind !== "string" || typeof metadata?.name !== "string") return undefined;
  return {
    kind,
    name: metadata.name,
    namespace: typeof metadata.namespace === "string" ? metadata.namespace : "default",
  };
}

/**
 * Calls `changed` soon after anything under the paths changed (several changes at once: one call).
 * Watches the containing folder of a file, since editors and ConfigMaps replace files instead of writing them.
 */
export function watchFiles(paths: readonly string[], changed: () => void, settleMs = 100): { close(): void } {
  let timer: NodeJS.Timeout | undefined;
  const settle = () => {
    clearTimeout(timer);
    timer = setTimeout(changed, settleMs);
  };
  const folders = new Set(paths.map((path) => (statSync(path).isDirectory() ? path : join(path, ".."))));
  const watchers: FSWatcher[] = [...folders].map((folder) => watch(folder, settle));
  // A folder that is removed is a change like any other: reading it will say what is wrong.
  for (const watcher of watchers) watcher.on("error", settle);
  return {
    close() {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}
