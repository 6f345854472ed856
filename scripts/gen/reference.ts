import { KINFERENCE_API } from "../../src/api/inference-policy.ts";
import type { KindDefinition } from "../../src/api/schemas.ts";

interface Node {
  type?: string;
  description?: string;
  default?: unknown;
  enum?: string[];
  properties?: Record<string, Node>;
  required?: string[];
  items?: Node;
  anyOf?: Node[];
  additionalProperties?: boolean | Node;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  maxItems?: number;
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-validations"?: { message: string }[];
}

/** The reference page: every field of every kind once; what has the shape of another refers to it. */
export function referencePage(kinds: readonly KindDefinition[]): string {
  const sections = kinds.map(({ kind, plural, shortName, description, spec }) => {
    const seen = new Map<string, string>();
    const rows = rowsOf("spec", spec as unknown as Node, seen);
    return `## ${kind}\n\n${description} \`kubectl get ${plural}\`, or \`${shortName}\`.\n\n| field | type | meaning |\n| --- | --- | --- |\n${rows.join("\n")}\n`;
  });
  return `# Reference\n\nGenerated from \`src/api\` by \`make gen\`, as are the CRDs and the JSON Schemas. \`apiVersion: ${KINFERENCE_API}\`; a field that\nis not listed is an error. **Bold** fields are required. How policies are evaluated: [policies.md](policies.md).\n\n${sections.join("\n")}`;
}

function rowsOf(path: string, node: Node, seen: Map<string, string>): string[] {
  if (node.properties !== undefined) {
    const rules = (node["x-kubernetes-validations"] ?? []).map(
      ({ message }) => `| \`${path}\` | | *Rule:* ${message}. |`,
    );
    const fields = Object.entries(node.properties).flatMap(([name, field]) => {
      const required = node.required?.includes(name) === true;
      return fieldRows(`${path}.${name}`, field, required, seen);
    });
    return [...rules, ...fields];
  }
  return [];
}

function fieldRows(path: string, node: Node, required: boolean, seen: Map<string, string>): string[] {
  const inner = objectsIn(node);
  const known = inner.map((object) => seen.get(JSON.stringify(object)));
  const likes = known.filter((one) => one !== undefined).map((one) => ` As \`${one}\`.`);
  const name = required ? `**\`${path}\`**` : `\`${path}\``;
  const row = `| ${name} | ${typeOf(node)} | ${cell(meaningOf(node))}${likes.join("")} |`;
  const below = inner.flatMap((object, i) => {
    if (known[i] !== undefined) return [];
    const place = pathOfObject(path, node);
    seen.set(JSON.stringify(object), place);
    return rowsOf(place, object, seen);
  });
  return [row, ...below];
}

/** The objects that a field holds: itself, its items, or one of its shapes. */
function objectsIn(node: Node): Node[] {
  if (node.properties !== undefined) return [node];
  if (node.items !== undefined) return objectsIn(node.items);
  return (node.anyOf ?? []).flatMap(objectsIn);
}

function pathOfObject(path: string, node: Node): string {
  return node.type === "array" ? `${path}[]` : path;
}

function typeOf(node: Node): string {
  if (node["x-kubernetes-int-or-string"] === true) return node.pattern?.includes("ms") ? "duration" : "quantity";
  if (node.anyOf !== undefined) return node.anyOf.map(typeOf).join(" or ");
  if (node.type === "array") return `list of ${node.items === undefined ? "values" : typeOf(node.items)}`;
  if (typeof node.additionalProperties === "object") return "map of text";
  return (
    { string: "text", object: "object", integer: "whole number", number: "number", boolean: "true, false" }[
      node.type ?? ""
    ] ?? ""
  );
}

function meaningOf({ description = "", default: fallback, enum: values, minimum, maximum, items }: Node): string {
  const parts = [description || items?.description || ""];
  const choices = values ?? items?.enum;
  if (choices !== undefined) parts.push(`One of ${choices.map((value) => `\`${value}\``).join(", ")}.`);
  if (minimum !== undefined && maximum !== undefined) parts.push(`From ${minimum} to ${maximum}.`);
  if (fallback !== undefined) parts.push(`Default: \`${String(fallback)}\`.`);
  return parts.filter(Boolean).join(" ");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
