import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Document, isMap, isNode, isScalar, LineCounter, parseAllDocuments } from "yaml";

/** Where something is in a file; `line` and `column` count from 1. */
export interface Place {
  file: string;
  line: number;
  column: number;
}

/** One document of a file, with the places of its parts. */
export interface PlacedDocument {
  readonly value: unknown;
  /**
   * Where the value at `path` starts, or the closest value above it that the file has.
   * @param atKey where its name starts
   */
  locate(path: readonly (string | number)[], atKey?: boolean): Place;
}

export interface ReadDocuments {
  readonly documents: PlacedDocument[];
  readonly mistakes: (Place & { message: string })[];
}

/** Reads the YAML or JSON documents of a file. Empty documents are left out. */
export function readDocuments(file: string): ReadDocuments {
  const lines = new LineCounter();
  let parsed: Document[];
  try {
    parsed = parseAllDocuments(readFileSync(file, "utf8"), { lineCounter: lines, uniqueKeys: true }) as Document[];
  } catch (error) {
    return {
      documents: [],
      mistakes: [{ file, line: 1, column: 1, message: `cannot be read: ${(error as Error).message}` }],
    };
  }
  const at = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(1, line), column: Math.max(1, col) };
  };
  const mistakes = parsed.flatMap((document) =>
    document.errors.map((error) => ({
      ...at(error.pos[0]),
      message: error.code === "DUPLICATE_KEY" ? "this key is there already" : firstLine(error.message),
    })),
  );
  const documents = parsed
    .filter((document) => document.errors.length === 0 && document.contents !== null)
    .map((document) => ({
      value: document.toJS() as unknown,
      locate: (path: readonly (string | number)[], atKey = false) =>
        at((atKey ? keyOffsetOf(document, path) : undefined) ?? offsetOf(document, path)),
    }));
  return { documents, mistakes };
}

function firstLine(message: string): string {
  return message.split("\n")[0]?.replace(/ at line \d+.*$/, "") ?? message;
}

function keyOffsetOf(document: Document, path: readonly (string | number)[]): number | undefined {
  const parent: unknown = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  const pair = isMap(parent) ? parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1)) : undefined;
  return isScalar(pair?.key) ? pair.key.range?.[0] : undefined;
}

function offsetOf(document: Document, path: readonly (string | number)[]): number {
  for (let depth = path.length; depth >= 0; depth--) {
    const node: unknown = depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
}

/** A file itself, or of a folder its `.yaml`, `.yml` and `.json` files in name order; test cases are left out. */
export function listFiles(path: string): string[] {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return isTestFile(path) ? [] : [path];
  const names = readdirSync(path).filter((name) => /[.](ya?ml|json)$/.test(name) && !isTestFile(name));
  return names.sort().map((name) => join(path, name));
}

/** Test cases lie beside the policies that they are about. */
export function isTestFile(name: string): boolean {
  return /[.]test[.]ya?ml$/.test(name);
}
