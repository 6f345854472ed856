import { type FSWatcher, readdirSync, readFileSync, statSync, watch } from "node:fs";
import { join } from "node:path";
import { type Document, isNode, LineCounter, parseAllDocuments } from "yaml";
import { keyOf, type Resource } from "../api/resource.ts";
import { type Problem, validateResource } from "../api/validate.ts";
import { referenceProblems } from "./references.ts";
import { type Identity, identityOf, problemText } from "./resource-status.ts";
import { buildSnapshot, type Snapshot } from "./snapshot.ts";

/** A mistake in a file, for its author. `line` and `column` count from 1. */
export interface FileProblem {
  file: string;
  line: number;
  column: number;
  message: string;
  /** The object with the mistake, where the file says which it is. */
  object?: Identity;
}

export type LoadResult = { ok: true; snapshot: Snapshot } | { ok: false; problems: FileProblem[] };

/** `file:line:column: message` */
export function formatProblem(problem: FileProblem): string {
  return `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`;
}

/** Further check of a snapshot that passed the schemas, by those who will use it. */
export type SnapshotCheck = (snapshot: Snapshot) => { object: Resource; problem: Problem }[];

interface Placed {
  object: Resource;
  locate(path: (string | number)[]): Pick<FileProblem, "file" | "line" | "column">;
}

/**
 * Reads YAML or JSON objects from files and folders (`.yaml`, `.yml`, `.json`, in name order) into a snapshot.
 * Any mistake anywhere refuses the whole: half a configuration is never used.
 */
export function loadFiles(
  paths: readonly string[],
  extra: readonly Resource[] = [],
  check: SnapshotCheck = () => [],
): LoadResult {
  const problems: FileProblem[] = [];
  const placed: Placed[] = [];
  for (const file of paths.flatMap(listFiles)) readObjects(file, placed, problems);
  if (problems.length > 0) return { ok: false, problems };
  const snapshot = buildSnapshot([...extra, ...placed.map((p) => p.object)]);
  for (const { object, problem } of [...referenceProblems(snapshot), ...check(snapshot)]) {
    const place = placed.find((p) => p.object === object)?.locate(problem.path) ?? {
      file: keyOf(object),
      line: 1,
      column: 1,
    };
    problems.push({ ...place, message: problemText(problem), object: identityOf(object) });
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, snapshot };
}

function listFiles(path: string): string[] {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [path];
  const names = readdirSync(path).filter((name) => /[.](ya?ml|json)$/.test(name));
  return names.sort().map((name) => join(path, name));
}

function readObjects(file: string, placed: Placed[], problems: FileProblem[]): void {
  const lines = new LineCounter();
  let documents: Document[];
  try {
    documents = parseAllDocuments(readFileSync(file, "utf8"), { lineCounter: lines, uniqueKeys: true }) as Document[];
  } catch (error) {
    problems.push({ file, line: 1, column: 1, message: `cannot be read: ${(error as Error).message}` });
    return;
  }
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(1, line), column: Math.max(1, col) };
  };
  for (const document of documents) {
    for (const error of document.errors) {
      problems.push({
        ...at(error.pos[0]),
        message: error.message.split("\n")[0]?.replace(/ at line \d+.*$/, "") ?? "not YAML",
      });
    }
    if (document.errors.length > 0 || document.contents === null) continue;
    const object: unknown = document.toJS();
    const locate = (path: (string | number)[]) => at(offsetOf(document, path));
    const found = validateResource(object);
    if (found.length === 0) placed.push({ object: object as Resource, locate });
    const identity = declaredIdentity(object);
    for (const problem of found)
      problems.push({
        ...locate(problem.path),
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

/** Where the value at `path` starts, or the closest value above it that the file has. */
function offsetOf(document: Document, path: (string | number)[]): number {
  for (let depth = path.length; depth >= 0; depth--) {
    const node: unknown = depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
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
