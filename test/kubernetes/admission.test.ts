import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import type { Resource } from "../../src/api/resource.ts";
import { validateResource } from "../../src/api/validate.ts";
import { ApiServer } from "./api-server.ts";

const api = new ApiServer();
let namespace: string;

beforeAll(async () => {
  await api.applyDefinitions();
  namespace = await api.createNamespace();
});
afterAll(() => api.deleteNamespace(namespace));

const kind = (name: string, spec: string) => `apiVersion: kinference.buoyant.io/v1alpha1
kind: ${name}
metadata: { name: bad }
spec: ${spec}`;
const policy = (rule: string) => kind("InferencePolicy", `{ rules: [${rule}] }`);
const limit = (fields: string) => policy(`{ name: r, limit: { ${fields} } }`);

test.each<[mistake: string, yaml: string, message: string]>([
  [
    "an unknown field",
    policy("{ name: r, route: { select: [{ minimise: PredictedTTFT }] } }"),
    'unknown field "spec.rules[0].route.select[0].minimise"',
  ],
  [
    "a value that is none of those allowed",
    policy("{ name: r, route: { onEmpty: Refuse } }"),
    'spec.rules[0].route.onEmpty: Unsupported value: "Refuse": supported values: "Reject", "NextRule"',
  ],
  [
    "a rule that does nothing",
    policy("{ name: r }"),
    "spec.rules[0]: Invalid value: a rule needs `route`, `reject` or `limit`",
  ],
  [
    "a rule that does two things",
    policy("{ name: r, route: {}, reject: { message: no } }"),
    "spec.rules[0]: Invalid value: a rule has one of `route` and `reject`, not both",
  ],
  [
    "a limit that names no header",
    limit("per: Header, tokens: Total, quantity: 1k, window: 1m"),
    "spec.rules[0].limit: Invalid value: per: Header needs `header`, the header's name",
  ],
  [
    "a quantity that is none",
    limit("per: Tenant, tokens: Total, quantity: many, window: 1m"),
    'spec.rules[0].limit.quantity: Invalid value: "many"',
  ],
  [
    "a duration that is none",
    limit("per: Tenant, tokens: Total, quantity: 1k, window: 1 minute"),
    'spec.rules[0].limit.window: Invalid value: "1 minute"',
  ],
  [
    "a stage that ranks by two things",
    policy("{ name: r, route: { select: [{ minimize: Cost, maximize: CachedTokens }] } }"),
    "spec.rules[0].route.select[0]: Invalid value: a stage ranks by one of minimize and maximize",
  ],
  [
    "a status that is no refusal",
    policy("{ name: r, reject: { status: 200, message: no } }"),
    "spec.rules[0].reject.status in body should be greater than or equal to 400",
  ],
  ["a missing field", policy("{ name: r, reject: {} }"), "spec.rules[0].reject.message: Required value"],
  [
    "two rules of one name",
    policy("{ name: r, route: {} }, { name: r, route: {} }"),
    'spec.rules[1]: Duplicate value: {"name":"r"}',
  ],
  [
    "a policy without rules",
    kind("InferencePolicy", "{ rules: [] }"),
    "spec.rules in body should have at least 1 items",
  ],
  [
    "a value of another type",
    kind("InferencePolicy", "{ priority: high, rules: [{ name: r, route: {} }] }"),
    "spec.priority in body must be of type integer",
  ],
  [
    "a target of another kind",
    kind("InferencePolicy", "{ targetRefs: [{ kind: Service, name: s }], rules: [{ name: r, route: {} }] }"),
    'spec.targetRefs[0].kind: Unsupported value: "Service": supported values: "Gateway", "HTTPRoute"',
  ],
  [
    "an exclusion that drops nothing in particular",
    policy("{ name: r, route: { exclude: [{ drop: {} }] } }"),
    "spec.rules[0].route.exclude[0].drop in body should have at least 1 properties",
  ],
  [
    "a condition that says nothing",
    policy("{ name: r, route: { exclude: [{ if: {}, drop: { backend: { type: Local } } }] } }"),
    "spec.rules[0].route.exclude[0].if in body should have at least 1 properties",
  ],
  [
    "a share above all",
    policy("{ name: r, route: { shadow: { model: m, percent: 120 } } }"),
    "spec.rules[0].route.shadow.percent in body should be less than or equal to 100",
  ],
  [
    "a range without ends",
    policy("{ name: r, matches: [{ promptTokens: {} }], route: {} }"),
    "spec.rules[0].matches[0].promptTokens in body should have at least 1 properties",
  ],
  [
    "a day that is none",
    policy("{ name: r, matches: [{ time: { days: [someday] } }], route: {} }"),
    'spec.rules[0].matches[0].time.days[0]: Invalid value: "someday"',
  ],
  [
    "a provider without models",
    kind("InferenceProvider", "{ type: OpenAI, models: [] }"),
    "spec.models in body should have at least 1 items",
  ],
  [
    "a provider that is nowhere",
    kind("InferenceProvider", "{ type: Databricks, models: [{ name: m }] }"),
    "spec: Invalid value: `endpoint` is missing (OpenAI and Anthropic have a default, Bedrock has one with `region`)",
  ],
  [
    "an endpoint that is no URL",
    kind("InferenceProvider", "{ type: OpenAICompatible, endpoint: 'ftp://x', models: [{ name: m }] }"),
    'spec.endpoint: Invalid value: "ftp://x"',
  ],
  [
    "a negative price",
    kind("InferenceProvider", "{ type: OpenAI, models: [{ name: m, price: { input: -1, output: 0 } }] }"),
    "spec.models[0].price.input in body should be greater than or equal to 0",
  ],
  ["half a price", kind("InferenceModel", "{ price: { input: 1 } }"), "spec.price.output: Required value"],
  [
    "a tenant's limit on something else",
    kind("InferenceTenant", "{ limits: [{ tokens: Words, quantity: 1k, window: 1m }] }"),
    'spec.limits[0].tokens: Unsupported value: "Words": supported values: "Input", "Output", "Total", "Cost"',
  ],
])("the API server refuses %s and says so, and so do we", async (_mistake, yaml, message) => {
  const object: unknown = parse(yaml);
  await expect(api.apply(namespace, object)).rejects.toThrow(message);
  expect(validateResource(object)).not.toEqual([]);
});

test("the API server takes every policy of the gallery, and their catalogue, as they stand", async () => {
  const gallery = new URL("../../docs/policies/", import.meta.url);
  const files = readdirSync(gallery, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".yaml") && !name.endsWith(".test.yaml"),
  );
  expect(files.length).toBeGreaterThanOrEqual(21);
  for (const file of files) {
    for (const document of parseAllDocuments(readFileSync(new URL(file, gallery), "utf8"))) {
      const object = document.toJS() as Resource;
      if (!object.apiVersion.startsWith("kinference.")) continue;
      await api.apply(namespace, object);
      const stored = await api.get(namespace, object.kind, object.metadata.name);
      // Nothing is lost on the way, and nothing is added.
      expect(stored.spec).toEqual(object.spec);
    }
  }
});
