import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { loadFiles } from "../resources/files.ts";
import { type EnvoyFiles, envoyFiles, writeEnvoyFiles } from "./envoy/config-files.ts";
import { parseEnvoyVersion } from "./envoy/version.ts";
import { snapshotToIr } from "./snapshot-to-ir.ts";

// NAME.in.yaml is what a user declares, NAME.out.yaml what Envoy 1.40 is told. UPDATE=1 writes the outputs anew: read the difference.
const FOLDER = fileURLToPath(new URL("../../test/golden/gateway", import.meta.url));
const CASES = readdirSync(FOLDER).filter((name) => name.endsWith(".in.yaml"));
const SETTINGS = {
  features: { usageFilters: true, priorityGroups: true },
  maxBodyBytes: 1000,
  handler: { host: "127.0.0.1", port: 9000 },
};

function filesOf(name: string): EnvoyFiles {
  const loaded = loadFiles([join(FOLDER, name)]);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return envoyFiles(snapshotToIr(loaded.snapshot, { address: "127.0.0.1", port: 8080 }), SETTINGS, "/run/kinference");
}

/** Routes, clusters and endpoints; listeners only by name and address, since their filters are the same in all cases. */
function excerpt(files: EnvoyFiles): string {
  const kept = [...files]
    .filter(([name]) => name !== "bootstrap.json")
    .map(([name, file]) => {
      const resources = file.resources as Record<string, unknown>[];
      return [
        name,
        name === "lds.json"
          ? resources.map((listener) => ({ name: listener.name, address: listener.address }))
          : resources,
      ];
    });
  return stringify(Object.fromEntries(kept), { lineWidth: 140, aliasDuplicateObjects: false });
}

describe("declared resources become Envoy's configuration", () => {
  test.each(CASES)("%s", (name) => {
    const output = join(FOLDER, name.replace(".in.", ".out."));
    const actual = excerpt(filesOf(name));
    if (process.env.UPDATE) writeFileSync(output, actual);
    expect(actual).toBe(readFileSync(output, "utf8"));
  });
});

test("files are written whole, and only their owner may read them", () => {
  const folder = join(mkdtempSync(join(tmpdir(), "kinference-files-")), "envoy");
  writeEnvoyFiles(filesOf(CASES[0] ?? ""), folder);
  expect(readdirSync(folder).some((name) => name.endsWith(".next"))).toBe(false);
});

test("Envoy's version is read from what it prints", () => {
  expect(
    parseEnvoyVersion("envoy  version: 9e5580933739775e8bce696a57a2e1bc99368f23/1.40.0/Clean/RELEASE/BoringSSL\n"),
  ).toEqual({ major: 1, minor: 40, text: "1.40.0" });
  expect(parseEnvoyVersion("nginx 1.2")).toBeUndefined();
});
