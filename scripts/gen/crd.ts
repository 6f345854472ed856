import { KINFERENCE_API } from "../../src/api/inference-policy.ts";
import type { Column, KindDefinition } from "../../src/api/schemas.ts";

type Plain = Record<string, unknown>;

/** The CustomResourceDefinition of a kind, as the API server takes it: a structural schema. */
export function crdOf({ kind, plural, shortName, description, spec, columns }: KindDefinition): Plain {
  const [group = "", version = ""] = KINFERENCE_API.split("/");
  const age: Column = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), shortNames: [shortName] },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [...columns, condition("Accepted"), condition("Programmed"), age],
          schema: {
            openAPIV3Schema: {
              type: "object",
              description,
              required: ["spec"],
              properties: {
                apiVersion: { type: "string" },
                kind: { type: "string" },
                metadata: { type: "object" },
                spec: structural(spec as unknown as Plain),
                status: STATUS,
              },
            },
          },
        },
      ],
    },
  };
}

/** What `kubectl get` shows of a condition. */
function condition(name: string): Column {
  return { name, type: "string", jsonPath: `.status.conditions[?(@.type=="${name}")].status` };
}

/**
 * A structural schema has no unions and no closed objects: unknown fields are refused by the API server's strict field
 * validation (which kubectl asks for), and a field of several shapes is left open, for the handler's status to judge.
 */
function structural(schema: Plain): Plain {
  if (schema["x-kubernetes-int-or-string"] === true) return described(schema, schema);
  if (schema.anyOf !== undefined) return described({ "x-kubernetes-preserve-unknown-fields": true }, schema);
  const { additionalProperties, properties, items, ...rest } = schema;
  return described(
    {
      ...rest,
      ...(properties === undefined ? {} : { properties: mapValues(properties as Record<string, Plain>, structural) }),
      ...(items === undefined ? {} : { items: structural(items as Plain) }),
      ...(typeof additionalProperties === "object" ? { additionalProperties } : {}),
    },
    schema,
  );
}

/** Defaults are only told: what is stored is what somebody wrote. */
function described(result: Plain, { description, default: fallback }: Plain): Plain {
  const { default: _, ...rest } = result;
  if (description === undefined || description === "") {
    const { description: __, ...bare } = rest;
    return bare;
  }
  return { ...rest, description: fallback === undefined ? description : `${description} Default: \`${fallback}\`.` };
}

function mapValues<T, U>(object: Record<string, T>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}

/** Conditions as every Gateway API kind has them (metav1.Condition), and what goes on while the newest is broken. */
const STATUS = {
  type: "object",
  description: "What became of it. Written by the inference handler.",
  properties: {
    lastGoodVersion: {
      type: "object",
      description: "The version that goes on while a newer one is invalid.",
      required: ["spec"],
      properties: {
        generation: { type: "integer", format: "int64", minimum: 0 },
        spec: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      },
    },
    conditions: {
      type: "array",
      maxItems: 8,
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["type"],
      items: {
        type: "object",
        required: ["type", "status", "lastTransitionTime", "reason", "message"],
        properties: {
          type: { type: "string", maxLength: 316 },
          status: { type: "string", enum: ["True", "False", "Unknown"] },
          observedGeneration: { type: "integer", format: "int64", minimum: 0 },
          lastTransitionTime: { type: "string", format: "date-time" },
          reason: { type: "string", minLength: 1, maxLength: 1024 },
          message: { type: "string", maxLength: 32768 },
        },
      },
    },
  },
};
