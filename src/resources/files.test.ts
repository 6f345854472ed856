import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { formatProblem, loadFiles } from "./files.ts";
import { resourcesForWorkers } from "./worker-flags.ts";

function problemsOf(yaml: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), "kinference-files-"));
  writeFileSync(join(folder, "x.yaml"), yaml);
  const result = loadFiles([folder]);
  return result.ok ? [] : result.problems.map((problem) => formatProblem(problem).replace(`${folder}/`, ""));
}

const policy = (rules: string) => `apiVersion: kinference.buoyant.io/v1alpha1
kind: InferencePolicy
metadata: { name: p }
spec:
  rules:
${rules}`;

test.each<[name: string, yaml: string, expected: string[]]>([
  [
    "a misspelt field",
    policy("  - name: r\n    route:\n      select: [{ minimise: PredictedTTFT }]"),
    ["x.yaml:8:18: spec.rules.0.route.select.0.minimise: unknown field `minimise`, did you mean `minimize`?"],
  ],
  [
    "a wrong value",
    policy("  - name: r\n    route: { onEmpty: Refuse }"),
    ['x.yaml:7:23: spec.rules.0.route.onEmpty: "Refuse" is not one of Reject, NextRule'],
  ],
  [
    "neither route nor reject",
    policy("  - name: r"),
    ["x.yaml:6:5: spec.rules.0: a rule needs `route`, `reject` or `limit`"],
  ],
  ["a missing field", policy("  - route: {}"), ["x.yaml:6:5: spec.rules.0: field `name` is missing"]],
  [
    "an unknown kind",
    "apiVersion: v1\nkind: InferencePolice\nmetadata: { name: x }",
    ['x.yaml:2:7: kind: unknown kind "InferencePolice", did you mean `InferencePolicy`?'],
  ],
  [
    "a wrong apiVersion",
    "apiVersion: v2\nkind: Secret\nmetadata: { name: x }",
    ['x.yaml:1:13: apiVersion: must be "v1", not "v2"'],
  ],
  ["not an object", "- 1", ["x.yaml:1:1: expected an object with apiVersion, kind and metadata"]],
  ["a key twice", "kind: Secret\nkind: Secret", ["x.yaml:2:1: this key is there already"]],
  [
    "broken YAML",
    "kind: [",
    ["x.yaml:1:8: Flow sequence in block collection must be sufficiently indented and end with a ]"],
  ],
  [
    "a pool that is not there",
    "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: { name: r }\nspec:\n  rules:\n  - backendRefs: [{ kind: InferencePool, name: gpus }]",
    ["x.yaml:6:48: spec.rules.0.backendRefs.0.name: no InferencePool default/gpus"],
  ],
])("%s is named with its place", (_name, yaml, expected) => {
  expect(problemsOf(yaml)).toEqual(expected);
});

test("--worker takes URLs of hosts, and says what is wrong with others", () => {
  expect(resourcesForWorkers(["http://gpu1:8000", "http://[::1]:9"], false)).toHaveLength(3);
  expect(() => resourcesForWorkers(["gpu1"], false)).toThrow("--worker gpu1: not a URL");
  expect(() => resourcesForWorkers(["https://gpu1"], false)).toThrow("only http://");
  expect(() => resourcesForWorkers(["http://gpu1/v1"], false)).toThrow("without a path");
});
