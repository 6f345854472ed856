import type { CandidateSource, InferencePolicy, PolicyRule, RejectAction, TargetRef } from "../api/inference-policy.ts";
import { keyOf, namespaceOf } from "../api/resource.ts";
import {
  type CandidateTest,
  compileCandidateMatch,
  compileMatches,
  compileRequestMatch,
  looksAtLoad,
  type RequestTest,
} from "./match.ts";
import { compileStage, DEFAULT_SELECT, type Stage } from "./select.ts";

export interface CompiledRule {
  /** `policy/rule`, as decisions and metrics call it. */
  readonly name: string;
  readonly matches: RequestTest;
  readonly action: CompiledRoute | { readonly reject: RejectAction };
}

export interface CompiledRoute {
  readonly consider: readonly CompiledSource[] | undefined;
  readonly exclude: readonly CompiledExclusion[];
  readonly select: readonly Stage[];
  readonly onEmpty: "Reject" | "NextRule";
}

export interface CompiledSource {
  readonly models: readonly string[];
  readonly backend: CandidateTest;
}

export interface CompiledExclusion {
  readonly name: string;
  readonly if: RequestTest;
  readonly drop: CandidateTest;
  readonly looksAtLoad: boolean;
}

/** The rules of one policy with where they apply. */
export interface CompiledPolicy {
  readonly key: string;
  readonly namespace: string;
  readonly targetRefs: readonly TargetRef[];
  readonly rules: readonly CompiledRule[];
}

/** Compiles policies in the order in which their rules are tried: priority, then oldest, then name. */
export function compilePolicies(policies: readonly InferencePolicy[]): CompiledPolicy[] {
  return [...policies].sort(precedence).map((policy) => ({
    key: keyOf(policy),
    namespace: namespaceOf(policy),
    targetRefs: policy.spec.targetRefs ?? [],
    rules: policy.spec.rules.map((rule) => compileRule(policy.metadata.name, rule)),
  }));
}

function precedence(a: InferencePolicy, b: InferencePolicy): number {
  const priority = (b.spec.priority ?? 0) - (a.spec.priority ?? 0);
  if (priority !== 0) return priority;
  // An object without a timestamp came from a file and counts as oldest.
  const [ageA, ageB] = [a.metadata.creationTimestamp ?? "", b.metadata.creationTimestamp ?? ""];
  if (ageA !== ageB) return ageA < ageB ? -1 : 1;
  return keyOf(a) < keyOf(b) ? -1 : 1;
}

function compileRule(policyName: string, rule: PolicyRule): CompiledRule {
  const name = `${policyName}/${rule.name}`;
  const matches = compileMatches(rule.matches);
  if (rule.reject !== undefined) return { name, matches, action: { reject: rule.reject } };
  const { consider, exclude = [], select = DEFAULT_SELECT, onEmpty = "Reject" } = rule.route ?? {};
  return {
    name,
    matches,
    action: {
      consider: consider?.map(compileSource),
      exclude: exclude.map((exclusion, i) => ({
        name: exclusion.name ?? `exclude[${i}]`,
        if: exclusion.if === undefined ? () => true : compileRequestMatch(exclusion.if),
        drop: compileCandidateMatch(exclusion.drop),
        looksAtLoad: looksAtLoad(exclusion.drop),
      })),
      select: select.map(compileStage),
      onEmpty,
    },
  };
}

function compileSource(source: CandidateSource): CompiledSource {
  return {
    models: source.models.names,
    backend: compileCandidateMatch(source.backend ? { backend: source.backend } : {}),
  };
}
