import type { InferencePolicy, PolicyRule } from "../api/inference-policy.ts";
import { keyOf } from "../api/resource.ts";
import type { Configuration } from "../handler/configuration.ts";
import type { Snapshot } from "../resources/snapshot.ts";

/** A rule with the policy that it is in. */
export interface PlacedRule {
  /** `policy/rule` */
  readonly name: string;
  readonly policy: InferencePolicy;
  readonly rule: PolicyRule;
  readonly path: readonly (string | number)[];
}

/** The rules that one route's requests meet, in the order in which they are tried, by the route's key. */
export type ScopedRules = ReadonlyMap<string, readonly PlacedRule[]>;

export function scopedRules(snapshot: Snapshot, { scopes }: Configuration): ScopedRules {
  const placed = allRules(snapshot);
  return new Map(
    [...scopes].map(([route, { rules }]) => [
      route,
      rules.flatMap((compiled) => placed.find((one) => one.key === compiled.key) ?? []),
    ]),
  );
}

/** Every rule that is declared, by `namespace/policy/rule`. */
export function allRules(snapshot: Snapshot): (PlacedRule & { key: string })[] {
  return snapshot.policies.flatMap((policy) =>
    policy.spec.rules.map((rule, i) => ({
      key: `${keyOf(policy)}/${rule.name}`,
      name: `${policy.metadata.name}/${rule.name}`,
      policy,
      rule,
      path: ["spec", "rules", i],
    })),
  );
}
