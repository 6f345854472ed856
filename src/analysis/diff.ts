import { isDeepStrictEqual } from "node:util";
import { keyOf, type Resource } from "../api/resource.ts";
import { compileConfiguration } from "../handler/configuration.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import { destination, egressOf } from "./egress.ts";
import { allRules } from "./scoped-rules.ts";

/** One difference in what is declared. */
export interface Change {
  /** `Kind namespace/name`, with `rule NAME` behind it for a rule of a policy. */
  what: string;
  change: "added" | "removed" | "changed" | "moved";
  /** The fields that differ, with both values. */
  fields: { path: string; before: unknown; after: unknown }[];
}

export interface Difference {
  changes: Change[];
  /** Rules by which requests can leave the cluster that could not before, and the other way around. */
  leaves: { gained: string[]; lost: string[] };
}

/** What differs in meaning between two sets of declared objects, rule by rule. */
export function diffSnapshots(before: Snapshot, after: Snapshot): Difference {
  const [old, fresh] = [objectsOf(before), objectsOf(after)];
  const keys = [...new Set([...old.keys(), ...fresh.keys()])];
  const changes = keys.flatMap((key): Change[] => {
    const [a, b] = [old.get(key), fresh.get(key)];
    if (a === undefined) return [{ what: key, change: "added", fields: [] }];
    if (b === undefined) return [{ what: key, change: "removed", fields: [] }];
    return changesWithin(key, a, b);
  });
  const [ways, newWays] = [waysOut(before), waysOut(after)];
  return {
    changes,
    leaves: {
      gained: newWays.filter((way) => !ways.includes(way)),
      lost: ways.filter((way) => !newWays.includes(way)),
    },
  };
}

function objectsOf(snapshot: Snapshot): Map<string, Resource> {
  const { policies, providers, models, tenants, gateways, routes } = snapshot;
  const all: Resource[] = [...policies, ...providers, ...models, ...tenants, ...gateways, ...routes];
  return new Map(all.map((object) => [`${object.kind} ${keyOf(object)}`, object]));
}

function changesWithin(key: string, before: Resource, after: Resource): Change[] {
  const [a, b] = [specOf(before), specOf(after)];
  const byRule = before.kind === "InferencePolicy";
  const rest = fieldChanges(
    { spec: byRule ? { ...a, rules: undefined } : a, labels: before.metadata.labels },
    { spec: byRule ? { ...b, rules: undefined } : b, labels: after.metadata.labels },
    "",
  );
  const whole: Change[] = rest.length === 0 ? [] : [{ what: key, change: "changed", fields: rest }];
  return byRule ? [...whole, ...ruleChanges(key, rulesOf(a), rulesOf(b))] : whole;
}

type NamedRule = { name: string };

function ruleChanges(key: string, before: readonly NamedRule[], after: readonly NamedRule[]): Change[] {
  const names = [...new Set([...before, ...after].map(({ name }) => name))];
  const staying = (rules: readonly NamedRule[], others: readonly NamedRule[]) =>
    rules.filter(({ name }) => others.some((other) => other.name === name)).map(({ name }) => name);
  const [oldOrder, newOrder] = [staying(before, after), staying(after, before)];
  return names.flatMap((name): Change[] => {
    const what = `${key} rule ${name}`;
    const a = before.find((rule) => rule.name === name);
    const b = after.find((rule) => rule.name === name);
    if (a === undefined) return [{ what, change: "added", fields: [] }];
    if (b === undefined) return [{ what, change: "removed", fields: [] }];
    const fields = fieldChanges(a, b, "");
    const changed: Change[] = fields.length === 0 ? [] : [{ what, change: "changed", fields }];
    const moved = oldOrder.indexOf(name) !== newOrder.indexOf(name);
    return moved ? [...changed, { what, change: "moved", fields: [] }] : changed;
  });
}

function specOf(object: Resource): Record<string, unknown> {
  return typeof object.spec === "object" && object.spec !== null ? { ...object.spec } : {};
}

function rulesOf({ rules }: Record<string, unknown>): NamedRule[] {
  const all: unknown[] = Array.isArray(rules) ? rules : [];
  return all.filter((rule): rule is NamedRule => typeof rule === "object" && rule !== null && "name" in rule);
}

function fieldChanges(before: unknown, after: unknown, path: string): Change["fields"] {
  if (isDeepStrictEqual(before, after)) return [];
  if (!isPlain(before) || !isPlain(after)) return [{ path, before, after }];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => fieldChanges(before[name], after[name], path === "" ? name : `${path}.${name}`));
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Each rule by which requests can leave, in words. */
function waysOut(snapshot: Snapshot): string[] {
  const { catalogue } = compileConfiguration(snapshot);
  return allRules(snapshot).flatMap(({ key, rule }) => {
    const egress = egressOf(rule, snapshot, catalogue);
    if (egress === undefined) return [];
    const unless = egress.unless.length === 0 ? "" : `, unless (${egress.unless.join(") or (")})`;
    return [`${key} to ${destination(egress)}${unless}`];
  });
}
