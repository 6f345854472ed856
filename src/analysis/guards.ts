import type { RequestMatch } from "../api/request-match.ts";
import type { ModelCatalogue } from "../policy/model-catalogue.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import { endsRequests, ruleHides, tagsOf } from "./coverage.ts";
import { closingConditions, egressOf } from "./egress.ts";
import type { Finding } from "./finding.ts";
import type { PlacedRule } from "./scoped-rules.ts";

/** Tags of one kind of data: what is said of the first holds of all. */
const DATA_TAGS = "pii-";
const ANY_DATA = "pii-detected";

/**
 * Where a rule lets out what another keeps inside. A tag is guarded once any rule of the route drops providers for it,
 * or refuses a tag of personal data or routes it to workers only; then no other rule may let it out.
 */
export function guardFindings(rules: readonly PlacedRule[], snapshot: Snapshot, catalogue: ModelCatalogue): Finding[] {
  const guarded = new Map<string, PlacedRule>();
  for (const placed of rules)
    for (const tag of guardedBy(placed, snapshot, catalogue)) if (!guarded.has(tag)) guarded.set(tag, placed);
  return [...guarded].flatMap(([tag, guard]) =>
    rules.flatMap((placed, i) => {
      if (egressOf(placed.rule, snapshot, catalogue) === undefined) return [];
      if (rules.slice(0, i).some((earlier) => ruleHides(earlier.rule, placed.rule, catalogue))) return [];
      if (closingConditions(placed.rule, snapshot).some((condition) => coversTag(condition, tag))) return [];
      return leak(placed, tag, guard, rules.slice(0, i), snapshot, catalogue);
    }),
  );
}

function leak(
  { policy: object, path, name }: PlacedRule,
  tag: string,
  guard: PlacedRule,
  earlier: readonly PlacedRule[],
  snapshot: Snapshot,
  catalogue: ModelCatalogue,
): Finding[] {
  const caught = earlier.find(({ rule }) => endsRequests(rule) && catches(rule.matches, tag));
  if (caught === undefined) {
    const message = `prompts tagged \`${tag}\` can leave the cluster here, though ${guard.name} keeps them inside; add \`exclude: [{ if: { tag: ${tag} }, drop: { backend: { type: Provider } } }]\``;
    return [{ severity: "error", code: "guard-defeated", object, path: [...path, "route"], message }];
  }
  // A refusal holds also for what cannot be told; an earlier way out is a finding of its own.
  if (caught.rule.reject !== undefined || egressOf(caught.rule, snapshot, catalogue) !== undefined) return [];
  if (caught.rule.matches === undefined) return [];
  const message = `${name} gets prompts of which nobody can tell whether they are \`${tag}\`: the match of a route does not hold for them; add \`exclude: [{ if: { tag: ${tag} }, drop: { backend: { type: Provider } } }]\` to ${name}`;
  return [
    {
      severity: "warning",
      code: "guard-fails-open",
      object: caught.policy,
      path: [...caught.path, "matches"],
      message,
    },
  ];
}

/** The tags that a rule keeps inside. */
function guardedBy({ rule }: PlacedRule, snapshot: Snapshot, catalogue: ModelCatalogue): string[] {
  const closing = closingConditions(rule, snapshot).flatMap((condition) => loneTags(condition));
  if (rule.limit !== undefined && rule.route === undefined && rule.reject === undefined) return closing;
  if (rule.reject === undefined && egressOf(rule, snapshot, catalogue) !== undefined) return closing;
  const refused = (rule.matches ?? []).flatMap((match) => loneTags(match));
  return [...closing, ...refused.filter((tag) => tag.startsWith(DATA_TAGS))];
}

/** The tags each of which alone makes a match hold. */
function loneTags(match: RequestMatch | undefined): string[] {
  if (match === undefined) return [];
  const others = Object.keys(match).filter((field) => !["tag", "tags", "anyTag"].includes(field));
  if (others.length > 0) return [];
  const all = tagsOf(match);
  if (match.anyTag !== undefined) return all.length === 0 ? match.anyTag : [];
  return all.length === 1 ? all : [];
}

function catches(matches: readonly RequestMatch[] | undefined, tag: string): boolean {
  return matches === undefined || matches.some((match) => coversTag(match, tag));
}

/** Whether the condition holds for all that has the tag. */
function coversTag(condition: RequestMatch | undefined, tag: string): boolean {
  if (condition === undefined) return true;
  const lone = loneTags(condition);
  return lone.includes(tag) || (lone.includes(ANY_DATA) && tag.startsWith(DATA_TAGS));
}
