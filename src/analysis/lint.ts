import type { RequestMatch } from "../api/request-match.ts";
import { type Configuration, compileConfiguration } from "../handler/configuration.ts";
import { compilePolicies } from "../policy/compile.ts";
import type { Path } from "../policy/compile-context.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import { contradiction, ruleHides } from "./coverage.ts";
import { destination, egressOf } from "./egress.ts";
import type { Finding } from "./finding.ts";
import { guardFindings } from "./guards.ts";
import { type KnownNames, nameFindings } from "./names.ts";
import { allRules, type PlacedRule, type ScopedRules, scopedRules } from "./scoped-rules.ts";

/** What can be proved about policies that are valid: each finding once, in the order of the files. */
export function lint(snapshot: Snapshot, known: KnownNames): Finding[] {
  const configuration = compileConfiguration(snapshot);
  const { catalogue } = configuration;
  const scopes = scopedRules(snapshot, configuration);
  const guards = [...scopes.values()].flatMap((rules) => guardFindings(rules, snapshot, catalogue));
  const late = hidden(snapshot, scopes, configuration);
  const reached = allRules(snapshot).filter(
    ({ policy, path }) => !late.some((finding) => finding.object === policy && finding.path[2] === path[2]),
  );
  return unique([
    ...guards,
    ...snapshot.policies.flatMap((policy) => nameFindings(policy, snapshot, catalogue, known)),
    ...late,
    ...allRules(snapshot).flatMap(contradictions),
    ...unusedTags(snapshot, configuration),
    ...reached.flatMap((placed) => leaving(placed, snapshot, configuration)),
  ]);
}

function unique(findings: readonly Finding[]): Finding[] {
  const seen = new Set<string>();
  return findings.filter(({ object, path, code, message }) => {
    const key = `${object.metadata.namespace} ${object.metadata.name} ${path.join(".")} ${code} ${message}`;
    return seen.size !== seen.add(key).size;
  });
}

/** Rules that on every route where they apply come behind one that takes all their requests. */
function hidden(snapshot: Snapshot, scopes: ScopedRules, { catalogue }: Configuration): Finding[] {
  return allRules(snapshot).flatMap(({ name, policy, path, rule }) => {
    const hiders: PlacedRule[] = [];
    for (const rules of scopes.values()) {
      const place = rules.findIndex((other) => other.policy === policy && other.rule === rule);
      if (place < 0) continue;
      const hider = rules.slice(0, place).find((earlier) => ruleHides(earlier.rule, rule, catalogue));
      if (hider === undefined) return [];
      hiders.push(hider);
    }
    const [hider] = hiders;
    if (hider === undefined) return [];
    const message = `${name} is never reached: ${hider.name} comes before it and decides on all that it matches`;
    return [{ severity: "warning", code: "rule-hidden", object: policy, path, message } as const];
  });
}

function contradictions({ policy, rule, path }: PlacedRule): Finding[] {
  const places: [RequestMatch, Path][] = [
    ...(rule.matches ?? []).map((match, i): [RequestMatch, Path] => [match, [...path, "matches", i]]),
    ...(rule.route?.exclude ?? []).flatMap((exclusion, i): [RequestMatch, Path][] =>
      exclusion.if === undefined ? [] : [[exclusion.if, [...path, "route", "exclude", i, "if"]]],
    ),
  ];
  return places.flatMap(([match, place]) => {
    const why = contradiction(match);
    if (why === undefined) return [];
    return [
      {
        severity: "warning",
        code: "never-holds",
        object: policy,
        path: place,
        message: `never holds: ${why}`,
      } as const,
    ];
  });
}

function unusedTags(snapshot: Snapshot, { catalogue }: Configuration): Finding[] {
  const used = new Map(compilePolicies(snapshot.policies, catalogue).map(({ key, usedTags }) => [key, usedTags]));
  return snapshot.policies.flatMap((policy) => {
    const key = `${policy.metadata.namespace ?? "default"}/${policy.metadata.name}`;
    const names = used.get(key)?.map(({ tag }) => tag) ?? [];
    return (policy.spec.tags ?? []).flatMap(({ name }, i) => {
      if (names.includes(name)) return [];
      const message = `no rule of this policy asks for the tag \`${name}\``;
      return [{ severity: "warning", code: "unused-tag", object: policy, path: ["spec", "tags", i], message } as const];
    });
  });
}

function leaving(
  { name, policy, rule, path }: PlacedRule,
  snapshot: Snapshot,
  { catalogue }: Configuration,
): Finding[] {
  const egress = egressOf(rule, snapshot, catalogue);
  if (egress === undefined) return [];
  const { models, when, unless } = egress;
  const what = models.length === 0 ? "requests" : `requests for ${models.join(", ")}`;
  const conditions = [
    when.length === 0 ? "" : `, when ${when.map((one) => `(${one})`).join(" or ")}`,
    unless.length === 0 ? "" : `, unless ${unless.map((one) => `(${one})`).join(" or ")}`,
  ];
  const message = `${name} lets ${what} leave the cluster to ${destination(egress)}${conditions.join("")}`;
  return [{ severity: "info", code: "leaves-cluster", object: policy, path: [...path, "route"], message }];
}
