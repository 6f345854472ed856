import type { TSchema } from "typebox";
import { inferenceModelSpec } from "./inference-model.ts";
import { inferencePolicySpec, KINFERENCE_API } from "./inference-policy.ts";
import { inferenceProviderSpec } from "./inference-provider.ts";
import { inferenceTenantSpec } from "./inference-tenant.ts";

/** JSON Schema (draft 2020-12 subset that CRDs share). */
export type Schema = { readonly [keyword: string]: unknown };

/** A column of `kubectl get`; with `priority: 1` only of `kubectl get -o wide`. */
export interface Column {
  name: string;
  type: "string" | "integer" | "date";
  jsonPath: string;
  priority?: 1;
}

/** A kind of ours: what its objects say, for the CRD and the reference page. */
export interface KindDefinition {
  kind: string;
  plural: string;
  shortName: string;
  description: string;
  spec: TSchema;
  /** Beside name, condition and age. */
  columns: Column[];
}

export const KINFERENCE_KINDS: readonly KindDefinition[] = [
  {
    kind: "InferencePolicy",
    plural: "inferencepolicies",
    shortName: "ipol",
    description: "Rules that say which requests go where, or are refused.",
    spec: inferencePolicySpec,
    columns: [{ name: "Priority", type: "integer", jsonPath: ".spec.priority" }],
  },
  {
    kind: "InferenceProvider",
    plural: "inferenceproviders",
    shortName: "iprov",
    description: "A backend outside the cluster; its name is what policies call it.",
    spec: inferenceProviderSpec,
    columns: [
      { name: "Type", type: "string", jsonPath: ".spec.type" },
      { name: "Region", type: "string", jsonPath: ".spec.region" },
      { name: "Endpoint", type: "string", jsonPath: ".spec.endpoint", priority: 1 },
    ],
  },
  {
    kind: "InferenceModel",
    plural: "inferencemodels",
    shortName: "imodel",
    description: "A catalogue entry for a model name. Optional: a model that workers serve is known without one.",
    spec: inferenceModelSpec,
    columns: [
      { name: "Model", type: "string", jsonPath: ".spec.modelName" },
      { name: "Family", type: "string", jsonPath: ".spec.family" },
      { name: "Tier", type: "string", jsonPath: ".spec.tier" },
    ],
  },
  {
    kind: "InferenceTenant",
    plural: "inferencetenants",
    shortName: "iten",
    description: "Who a tenant is, and what it may use. A request that no tenant claims belongs to `default`.",
    spec: inferenceTenantSpec,
    columns: [{ name: "Priority", type: "integer", jsonPath: ".spec.priority" }],
  },
];

const text: Schema = { type: "string", minLength: 1 };
const oneOf = (...values: readonly string[]): Schema => ({ type: "string", enum: values });
const integer: Schema = { type: "integer" };
const list = (items: Schema, more: Schema = {}): Schema => ({ type: "array", items, ...more });
const closed = (properties: Record<string, Schema>): Schema => ({
  type: "object",
  properties,
  additionalProperties: false,
});
/** Standard kinds have more fields than we read. */
const open = (properties: Record<string, Schema>, required: string[] = []): Schema => ({
  type: "object",
  properties,
  required,
});
const stringMap: Schema = { type: "object", additionalProperties: { type: "string" } };

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
  headers: list({
    ...closed({ type: oneOf("Exact"), name: text, value: { type: "string" } }),
    required: ["name", "value"],
  }),
});
const routeSpec = open(
  {
    parentRefs: list(open({ name: text }, ["name"])),
    hostnames: list(text),
    rules: list(
      {
        ...closed({
          name: text,
          matches: list(routeMatch),
          backendRefs: list(open({ kind: oneOf("InferencePool"), name: text, weight: integer }, ["kind", "name"]), {
            minItems: 1,
          }),
        }),
        required: ["backendRefs"],
      },
      { minItems: 1 },
    ),
  },
  ["rules"],
);

const metadata = open({ name: text, namespace: text, labels: stringMap }, ["name"]);
const object = (
  apiVersion: string,
  kind: string,
  properties: Record<string, Schema | TSchema>,
  required: string[],
): Schema => ({
  type: "object",
  properties: { apiVersion: { const: apiVersion }, kind: { const: kind }, metadata, ...properties },
  required: ["apiVersion", "kind", "metadata", ...required],
});
const withSpec = (apiVersion: string, kind: string, spec: Schema | TSchema) =>
  object(apiVersion, kind, { spec }, ["spec"]);

/** The schema of each kind that we read, by kind. A kind that is not here is refused. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  ...Object.fromEntries(KINFERENCE_KINDS.map(({ kind, spec }) => [kind, withSpec(KINFERENCE_API, kind, spec)])),
  InferencePool: withSpec("inference.networking.k8s.io/v1", "InferencePool", poolSpec),
  EndpointSlice: object("discovery.k8s.io/v1", "EndpointSlice", endpointSlice, ["addressType", "endpoints"]),
  Secret: object("v1", "Secret", { data: stringMap, stringData: stringMap }, []),
  Gateway: withSpec("gateway.networking.k8s.io/v1", "Gateway", gatewaySpec),
  HTTPRoute: withSpec("gateway.networking.k8s.io/v1", "HTTPRoute", routeSpec),
};
