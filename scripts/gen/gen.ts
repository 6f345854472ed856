import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { testFileSchema } from "../../src/analysis/test-file.ts";
import { KINFERENCE_KINDS, SCHEMAS } from "../../src/api/schemas.ts";
import { crdOf } from "./crd.ts";
import { referencePage } from "./reference.ts";

// Writes what follows from src/api: CRDs, JSON Schemas, the reference page. `--check` only says what is out of date.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NOTE = "# Generated from src/api by `make gen`.\n";
/** Folders in which nothing else may be. */
const FOLDERS = ["deploy/kinference-crds/templates", "docs/schemas"];

function jsonSchema(title: string, schema: object): string {
  return `${JSON.stringify({ $schema: "https://json-schema.org/draft/2020-12/schema", title, ...schema }, null, 2)}\n`;
}

function generated(): Map<string, string> {
  const files = new Map<string, string>([["docs/reference.md", referencePage(KINFERENCE_KINDS)]]);
  for (const definition of KINFERENCE_KINDS) {
    const { kind, plural } = definition;
    files.set(
      `deploy/kinference-crds/templates/${plural}.yaml`,
      NOTE + stringify(crdOf(definition), { lineWidth: 0, aliasDuplicateObjects: false }),
    );
    files.set(`docs/schemas/${kind}.json`, jsonSchema(kind, SCHEMAS[kind] ?? {}));
  }
  files.set("docs/schemas/policy-test.json", jsonSchema("Test cases of policies", testFileSchema));
  return files;
}

function strangers(files: ReadonlyMap<string, string>): string[] {
  return FOLDERS.flatMap((folder) => {
    mkdirSync(join(ROOT, folder), { recursive: true });
    return readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`);
  }).filter((path) => !files.has(path));
}

function current(path: string): string | undefined {
  try {
    return readFileSync(join(ROOT, path), "utf8");
  } catch {
    return undefined;
  }
}

const files = generated();
const outdated = [...files].filter(([path, text]) => current(path) !== text).map(([path]) => path);
const wrong = [...outdated, ...strangers(files)];
if (process.argv.includes("--check")) {
  for (const path of wrong) console.error(`${path} is not what src/api says: run \`make gen\``);
  process.exitCode = wrong.length === 0 ? 0 : 1;
} else {
  for (const path of strangers(files)) rmSync(join(ROOT, path));
  for (const [path, text] of files) {
    mkdirSync(join(ROOT, dirname(path)), { recursive: true });
    writeFileSync(join(ROOT, path), text);
  }
  console.log(wrong.length === 0 ? "nothing changed" : `written: ${wrong.join(", ")}`);
}
