import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { loadFiles } from "../resources/files.ts";
import { lint } from "./lint.ts";
import { knownNames } from "./names.ts";
import { runTests } from "./run-tests.ts";
import { loadTests } from "./test-file.ts";

// The gallery in docs/policies: each policy has cases that hold, and nothing that lint calls an error.

const FOLDER = fileURLToPath(new URL("../../docs/policies", import.meta.url));
const policies = readdirSync(FOLDER).filter((name) => /(?<![.]test)[.]yaml$/.test(name));

function casesOf(policy: string) {
  const tests = loadTests(join(FOLDER, policy.replace(".yaml", ".test.yaml")));
  if (!tests.ok) throw new Error(JSON.stringify(tests.problems));
  const declared = loadFiles(tests.loaded.policies, [], []);
  if (!declared.ok) throw new Error(JSON.stringify(declared.problems));
  return { results: runTests(tests.loaded, declared.snapshot), snapshot: declared.snapshot };
}

test("the gallery has at least 15 tasks beside the three that the product is known by", () => {
  expect(policies.length).toBeGreaterThanOrEqual(18);
});

describe.each(policies)("%s", (policy) => {
  const { results, snapshot } = casesOf(policy);
  test.each(results.map((result) => [result.name, result] as const))("%s", (_name, result) => {
    expect(result.mismatches).toEqual([]);
  });

  test("has no error for lint", () => {
    expect(lint(snapshot, knownNames(snapshot)).filter(({ severity }) => severity === "error")).toEqual([]);
  });
});

// These files are a contract: they are to run as they stand, byte for byte.
test.each([
  ["burst-policy.yaml", "6fbba01d8848d447688902bb658343cba9c1a6714320d76cc9ed5d732a6a1d7e"],
  ["pii-stays-local.yaml", "4a4da05038c436418f60d5a1c44aa8fb0669d073a6d5eeaaa2b7a9a72b5fb1f7"],
  ["smart-semantic-routing.yaml", "d15fa6cc14724eff068e6a94a20209b7dbc0c9ac1949f216a07103ab720adbc0"],
])("%s is as it was agreed on, with at least 20 situations", (policy, sha256) => {
  const digest = createHash("sha256")
    .update(readFileSync(join(FOLDER, policy)))
    .digest("hex");
  expect(digest).toBe(sha256);
  expect(casesOf(policy).results.length).toBeGreaterThanOrEqual(20);
});
