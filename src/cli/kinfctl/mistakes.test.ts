import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { linted } from "./lint.ts";

// docs/mistakes.md shows each kind of mistake with what `kinfctl lint` says. UPDATE=1 writes it anew: read the difference.

const PAGE = fileURLToPath(new URL("../../../docs/mistakes.md", import.meta.url));

const policy = (spec: string, name = "p") =>
  `apiVersion: kinference.buoyant.io/v1alpha1\nkind: InferencePolicy\nmetadata: { name: ${name} }\nspec:\n${spec
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n")}\n`;
const rule = (text: string) => policy(`rules:\n  - name: r\n${text.replace(/^/gm, "    ")}`);
const match = (text: string) => rule(`matches: [{ ${text} }]\nroute: {}`);
const resource = (kind: string, spec: string) =>
  `apiVersion: kinference.buoyant.io/v1alpha1\nkind: ${kind}\nmetadata: { name: x }\nspec: ${spec}\n`;
const PROVIDER = resource("InferenceProvider", "{ type: OpenAI, models: [{ name: glm-5.3 }] }").replace(
  "name: x",
  "name: bedrock",
);

const MISTAKES: [group: string, cases: [what: string, yaml: string][]][] = [
  [
    "Form",
    [
      ["A misspelt field", rule("route:\n  select: [{ minimise: PredictedTTFT }]")],
      ["A field in the wrong place", rule("minimize: Cost\nroute: {}")],
      ["A value that is none of those there are", rule("route: { onEmpty: Refuse }")],
      ["A value with another name", rule("route:\n  select: [{ minimize: PredictedTtft }]")],
      ["A field that must be there", policy("rules:\n  - route: {}")],
      ["Text where a number belongs", match("percent: five")],
      ["A number where a range belongs", match("promptTokens: 8000")],
      ["A quantity with a wrong unit", match("promptTokens: { greaterThan: 32kb }")],
      [
        "A duration with a wrong unit",
        rule("route:\n  exclude: [{ drop: { predictedTTFT: { greaterThan: 2 sec } } }]"),
      ],
      ["A list where one belongs", match("tag: [a, b]")],
      ["One where a list belongs", rule("matches: { model: m }\nroute: {}")],
      ["An empty match, which would hold always", rule("matches: [{}]\nroute: {}")],
      ["No rules", policy("rules: []")],
      ["Two rules with one name", policy("rules:\n  - { name: r, route: {} }\n  - { name: r, route: {} }")],
      ["A rule that does nothing", policy("rules:\n  - name: r")],
      ["A rule that routes and rejects", rule("route: {}\nreject: { message: no }")],
      ["A stage that ranks twice", rule("route:\n  select: [{ minimize: Cost, maximize: CachedTokens }]")],
      [
        "A limit by a header that it does not name",
        rule("limit: { per: Header, tokens: Total, quantity: 1k, window: 1m }"),
      ],
      ["A status that is no error", rule("reject: { status: 200, message: no }")],
      [
        "A tag without a way to tell it",
        policy("tags: [{ name: t }]\nrules:\n  - { name: r, matches: [{ tag: t }], route: {} }"),
      ],
      ["A weekday that there is not", match("time: { days: [monday] }")],
      ["A time of day that there is not", match('time: { from: "8:00" }')],
      ["An unknown kind", policy("rules: []").replace("InferencePolicy", "InferencePolicies")],
      ["A wrong apiVersion", policy("rules:\n  - { name: r, route: {} }").replace("v1alpha1", "v1")],
      ["A key twice", rule("route: {}\nroute: {}")],
      ["Broken YAML", "kind: ["],
      ["Not an object", "- 1\n"],
    ],
  ],
  [
    "Meaning",
    [
      ["A tag that nobody computes", match("tag: complexity-lo")],
      ["An expression that is not CEL", match("expression: promptTokens >")],
      ["A name that expressions do not have", match("expression: promptToken > 5")],
      ["A function that there is not", match("expression: size(model) > len(tenant)")],
      ["An expression that gives no yes or no", match("expression: promptTokens + 1")],
      ["Types that do not go together", match('expression: promptTokens > "many"')],
      ["A time zone that there is not", match("time: { timeZone: Europe/Zuerich }")],
      ["A label expression that is none", match("tenant: { labels: tier=gold|silver }")],
      [
        "A pattern that is none",
        policy("tags: [{ name: t, pattern: '(' }]\nrules:\n  - { name: r, matches: [{ tag: t }], route: {} }"),
      ],
      ["A provider without an address", resource("InferenceProvider", "{ type: Databricks, models: [{ name: m }] }")],
      ["A price below zero", resource("InferenceModel", "{ price: { input: -1, output: 2 } }")],
    ],
  ],
  [
    "What can be proved",
    [
      [
        "A rule that comes too late",
        policy(
          "rules:\n  - { name: all, route: {} }\n  - { name: late, matches: [{ model: m }], reject: { message: no } }",
        ),
      ],
      ["A match that no request has", match("promptTokens: { greaterThan: 32k, lessThan: 8k }")],
      ["Tags that exclude each other", match("tags: [complexity-low, complexity-high]")],
      [
        "A provider that nobody declared",
        `${PROVIDER}---\n${rule("route:\n  select: [{ type: Provider, order: [bedrok] }]")}`,
      ],
      ["A model that nobody serves", `${PROVIDER}---\n${match("model: glm-5.2")}`],
      ["A class without models", match("model: class/coding")],
      ["A tag that no rule asks for", policy("tags: [{ name: t, keywords: [k] }]\nrules:\n  - { name: r, route: {} }")],
      [
        "A guard that another rule defeats",
        policy(
          "rules:\n  - name: long\n    matches: [{ promptTokens: { greaterThan: 32k } }]\n    route:\n      select: [{ type: Provider, minimize: Cost }]\n  - name: guarded\n    route:\n      exclude: [{ if: { tag: pii-detected }, drop: { backend: { type: Provider } } }]\n      select: [{ minimize: PredictedTTFT }]",
        ),
      ],
      [
        "A guard that lets pass what nobody can tell",
        policy(
          "rules:\n  - name: guard\n    matches: [{ tag: pii-detected }]\n    route: {}\n  - name: rest\n    route:\n      select: [{ type: Provider, minimize: Cost }]",
        ),
      ],
    ],
  ],
];

async function said(yaml: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "kinference-mistakes-"));
  writeFileSync(join(folder, "x.yaml"), yaml);
  const lines = await linted([folder], {});
  return lines.map(
    ({ severity, line, column, code, message }) => `x.yaml:${line}:${column}: ${severity}: ${message} [${code}]`,
  );
}

test("docs/mistakes.md shows each kind of mistake with what is said of it", async () => {
  const sections: string[] = [];
  for (const [group, cases] of MISTAKES) {
    sections.push(`## ${group}\n`);
    for (const [what, yaml] of cases) {
      const lines = await said(yaml);
      expect(
        lines.filter((line) => !line.includes(" info: ")),
        what,
      ).not.toEqual([]);
      sections.push(
        `### ${what}\n\n\`\`\`yaml\n${yaml.trimEnd()}\n\`\`\`\n\n\`\`\`text\n${lines.join("\n")}\n\`\`\`\n`,
      );
    }
  }
  const page = `# Mistakes and what is said of them\n\nEach file below is \`x.yaml\`, and under it is what \`kinfctl lint x.yaml\` prints. Errors refuse the file: the last good\nversion goes on. Warnings do not, unless \`--strict\` says so.\n\n${sections.join("\n")}`;
  if (process.env.UPDATE) writeFileSync(PAGE, page);
  expect(page).toBe(readFileSync(PAGE, "utf8"));
});
