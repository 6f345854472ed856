import { API_NAMES, KINFERENCE_API, MAXIMIZE_BY, MINIMIZE_BY } from "./inference-policy.ts";

/** JSON Schema (draft 2020-12 subset that CRDs share). */
export type Schema = { readonly [keyword: string]: unknown };

const text: Schema = { type: "string", minLength: 1 };
const texts: Schema = { type: "array", items: text, minItems: 1 };
const bool: Schema = { type: "boolean" };
const integer: Schema = { type: "integer" };
const oneOf = (...values: readonly string[]): Schema => ({ type: "string", enum: values });
const list = (items: Schema, more: Schema = {}): Schema => ({ type: "array", items, ...more });
/** An object with just these fields; an unknown field is an error, never ignored. */
const closed = (properties: Record<string, Schema>, required: string[] = [], more: Schema = {}): Schema => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
  ...more,
});
const open = (properties: Record<string, Schema>, required: string[] = []): Schema => ({
  type: "object",
  properties,
  required,
});
const stringMap: Schema = { type: "object", additionalProperties: { type: "string" } };

const quantity: Schema = {
  anyOf: [{ type: "number" }, { type: "string", pattern: "^[0-9]+([.][0-9]+)?(k|M|ms|s|m)?$" }],
};
const range = closed(
  { greaterThan: quantity, atLeast: quantity, lessThan: quantity, atMost: quantity, equals: quantity },
  [],
  { minProperties: 1 },
);
const names = closed({ names: texts }, ["names"]);
const modelMatch: Schema = { anyOf: [text, names] };
const backend = closed({ type: oneOf("Local", "Provider"), name: text }, [], { minProperties: 1 });

const requestMatch = closed(
  {
    model: modelMatch,
    tag: text,
    tags: texts,
    anyTag: texts,
    tenant: text,
    api: { anyOf: [oneOf(...API_NAMES), list(oneOf(...API_NAMES), { minItems: 1 })] },
    path: text,
    headers: list(closed({ name: text, value: { type: "string" } }, ["name"]), { minItems: 1 }),
    stream: bool,
    promptTokens: range,
    maxTokens: range,
    tools: bool,
    images: bool,
  },
  [],
  { minProperties: 1 },
);

const candidateMatch = closed(
  {
    backend,
    model: modelMatch,
    queuedPrompts: range,
    runningPrompts: range,
    kvCacheUsage: range,
    predictedTTFT: range,
    predictedCachedTokens: range,
  },
  [],
  { minProperties: 1 },
);

const selectStage = closed(
  {
    type: oneOf("Local", "Provider"),
    minimize: oneOf(...MINIMIZE_BY),
    maximize: oneOf(...MAXIMIZE_BY),
    order: texts,
  },
  [],
  { minProperties: 1 },
);

const routeAction = closed({
  consider: list(closed({ models: names, backend }, ["models"]), { minItems: 1 }),
  exclude: list(closed({ name: text, if: requestMatch, drop: candidateMatch }, ["drop"])),
  select: list(selectStage, { minItems: 1 }),
  onEmpty: oneOf("Reject", "NextRule"),
});

const rejectAction = closed({ status: { type: "integer", minimum: 400, maximum: 599 }, code: text, message: text }, [
  "message",
]);

const policySpec = closed(
  {
    priority: integer,
    targetRefs: list(closed({ group: text, kind: oneOf("Gateway", "HTTPRoute"), name: text }, ["kind", "name"])),
    rules: list(
      closed(
        { name: text, matches: list(requestMatch, { minItems: 1 }), route: routeAction, reject: rejectAction },
        ["name"],
        {
          oneOf: [{ required: ["route"] }, { required: ["reject"] }],
        },
      ),
      { minItems: 1 },
    ),
  },
  ["rules"],
);

const price = closed({ input: { type: "number" }, output: { type: "number" }, cachedInput: { type: "number" } }, [
  "input",
  "output",
]);
const providerSpec = closed(
  {
    type: oneOf("OpenAICompatible"),
    endpoint: { type: "string", pattern: "^https?://[^/]+" },
    credentialsRef: closed({ name: text, key: text }, ["name"]),
    models: list(
      closed({ name: text, providerName: text, price, expectedTtftMs: { type: "number", minimum: 0 } }, ["name"]),
      {
        minItems: 1,
      },
    ),
  },
  ["type", "endpoint", "models"],
);

const tenantSpec = closed({ apiKeyHashesRef: closed({ name: text }, ["name"]) });

const port: Schema = { type: "integer", minimum: 1, maximum: 65535 };
const poolSpec = open(
  {
    selector: open({ matchLabels: stringMap }, ["matchLabels"]),
    targetPorts: list(open({ number: port }, ["number"]), { minItems: 1, maxItems: 8 }),
    endpointPickerRef: open({ name: text, failureMode: oneOf("FailClose", "FailOpen") }, ["name"]),
  },
  ["selector", "targetPorts"],
);
const endpointSlice: Record<string, Schema> = {
  addressType: oneOf("IPv4", "IPv6", "FQDN"),
  endpoints: list(open({ addresses: list(text, { minItems: 1 }) }, ["addresses"])),
  ports: list(open({ port }, ["port"])),
};
const gatewaySpec = open(
  {
    listeners: list(open({ name: text, port, protocol: oneOf("HTTP"), hostname: text }, ["name", "port", "protocol"]), {
      minItems: 1,
    }),
  },
  ["listeners"],
);
const routeMatch = closed({
  path: closed({ type: oneOf("Exact", "PathPrefix"), value: { type: "string", pattern: "^/" } }),
  headers: list(closed({ type: oneOf("Exact"), name: text, value: { type: "string" } }, ["name", "value"])),
});
const routeSpec = open(
  {
    parentRefs: list(open({ name: text }, ["name"])),
    hostnames: list(text),
    rules: list(
      closed(
        {
          name: text,
          matches: list(routeMatch),
          backendRefs: list(open({ kind: oneOf("InferencePool"), name: text, weight: integer }, ["kind", "name"]), {
            minItems: 1,
          }),
        },
        ["backendRefs"],
      ),
      { minItems: 1 },
    ),
  },
  ["rules"],
);

const metadata = open({ name: text, namespace: text, labels: stringMap }, ["name"]);
const object = (apiVersion: string, kind: string, properties: Record<string, Schema>, required: string[]): Schema => ({
  type: "object",
  properties: { apiVersion: { const: apiVersion }, kind: { const: kind }, metadata, ...properties },
  required: ["apiVersion", "kind", "metadata", ...required],
});
const withSpec = (apiVersion: string, kind: string, spec: Schema) => object(apiVersion, kind, { spec }, ["spec"]);

/** The schema of each kind that we read, by kind. A kind that is not here is refused. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  InferencePolicy: withSpec(KINFERENCE_API, "InferencePolicy", policySpec),
  InferenceProvider: withSpec(KINFERENCE_API, "InferenceProvider", providerSpec),
  InferenceTenant: withSpec(KINFERENCE_API, "InferenceTenant", tenantSpec),
  InferencePool: withSpec("inference.networking.k8s.io/v1", "InferencePool", poolSpec),
  EndpointSlice: object("discovery.k8s.io/v1", "EndpointSlice", endpointSlice, ["addressType", "endpoints"]),
  Secret: object("v1", "Secret", { data: stringMap, stringData: stringMap }, []),
  Gateway: withSpec("gateway.networking.k8s.io/v1", "Gateway", gatewaySpec),
  HTTPRoute: withSpec("gateway.networking.k8s.io/v1", "HTTPRoute", routeSpec),
};
