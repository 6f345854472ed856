import type {
  CandidateSource,
  InferencePolicy,
  PolicyRule,
  RejectAction,
  RouteAction,
  TargetRef,
} from "../api/inference-policy.ts";
import { keyOf, namespaceOf } from "../api/resource.ts";
import type { TagDefinition } from "../api/tag-definition.ts";
import type { Problem } from "../api/validate.ts";
import { CompileContext, type Path } from "./compile-context.ts";
import { type CompiledLimit, compileLimit } from "./limit.ts";
import {
  type CandidateTest,
  Conjunction,
  compileCandidateMatch,
  compileRequestMatch,
  looksAtLoad,
  type RequestTest,
} from "./match.ts";
import type { ModelCatalogue } from "./model-catalogue.ts";
import { compileStage, DEFAULT_SELECT, type Stage } from "./select.ts";

export interface CompiledRule {
  /** `namespace/policy/rule` */
  readonly key: string;
  /** `policy/rule`, as decisions and metrics call it. */
  readonly name: string;
  /** Alternatives; undefined: always. */
  readonly matches: readonly RequestTest[] | undefined;
  readonly limit: CompiledLimit | undefined;
  /** Undefined: the rule only charges its limit. */
  readonly route: CompiledRoute | undefined;
  readonly reject: RejectAction | undefined;
}

export interface CompiledRoute {
  readonly consider: readonly CompiledSource[] | undefined;
  readonly exclude: readonly CompiledExclusion[];
  readonly select: readonly Stage[];
  readonly onEmpty: "Reject" | "NextRule";
  readonly shadow: RouteAction["shadow"];
}

export interface CompiledSource {
  /** The names, where the source lists nothing else; otherwise every served model is tried. */
  readonly listed: readonly string[] | undefined;
  readonly model: (name: string) => boolean;
  readonly backend: CandidateTest;
}

export interface CompiledExclusion {
  readonly name: string;
  /** Undefined: always. */
  readonly if: RequestTest | undefined;
  readonly drop: CandidateTest;
  readonly looksAtLoad: boolean;
}

/** The rules of one policy with where they apply. */
export interface CompiledPolicy {
  readonly key: string;
  readonly namespace: string;
  readonly targetRefs: readonly TargetRef[];
  readonly rules: readonly CompiledRule[];
  /** Definitions of its own tags. */
  readonly tags: readonly TagDefinition[];
  /** Every tag that its rules ask for, with the places that do. */
  readonly usedTags: readonly { tag: string; path: Path }[];
  /** Mistakes that only compiling finds. A policy that has one is not to be used. */
  readonly problems: readonly Problem[];
}

/** Compiles policies in the order in which their rules are tried: priority, then oldest, then name. */
export function compilePolicies(policies: readonly InferencePolicy[], catalogue: ModelCatalogue): CompiledPolicy[] {
  return [...policies].sort(precedence).map((policy) => {
    const ownTags = (policy.spec.tags ?? []).map((tag) => tag.name);
    const context = new CompileContext(catalogue, keyOf(policy), ownTags);
    const rules = policy.spec.rules.map((rule, i) => compileRule(policy, rule, context, ["spec", "rules", i]));
    return {
      key: keyOf(policy),
      namespace: namespaceOf(policy),
      targetRefs: policy.spec.targetRefs ?? [],
      rules,
      tags: policy.spec.tags ?? [],
      usedTags: context.tags,
      problems: context.problems,
    };
  });
}

function precedence(a: InferencePolicy, b: InferencePolicy): number {
  const priority = (b.spec.priority ?? 0) - (a.spec.priority ?? 0);
  if (priority !== 0) return priority;
  // An object without a timestamp came from a file and counts as oldest.
  const [ageA, ageB] = [a.metadata.creationTimestamp ?? "", b.metadata.creationTimestamp ?? ""];
  if (ageA !== ageB) return ageA < ageB ? -1 : 1;
  return keyOf(a) < keyOf(b) ? -1 : 1;
}

function compileRule(policy: InferencePolicy, rule: PolicyRule, context: CompileContext, path: Path): CompiledRule {
  return {
    key: `${keyOf(policy)}/${rule.name}`,
    name: `${policy.metadata.name}/${rule.name}`,
    matches: rule.matches?.map((match, i) => compileRequestMatch(match, context, [...path, "matches", i])),
    limit: rule.limit && compileLimit(rule.limit, `${keyOf(policy)}/${rule.name}`),
    route: rule.route && compileRoute(rule.route, context, [...path, "route"]),
    reject: rule.reject,
  };
}

function compileRoute(route: RouteAction, context: CompileContext, path: Path): CompiledRoute {
  const { consider, exclude = [], select = DEFAULT_SELECT, onEmpty = "Reject", shadow } = route;
  return {
    consider: consider?.map((source, i) => compileSource(source, context, [...path, "consider", i])),
    exclude: exclude.map((exclusion, i) => ({
      name: exclusion.name ?? `exclude[${i}]`,
      if: exclusion.if && compileRequestMatch(exclusion.if, context, [...path, "exclude", i, "if"]),
      drop: compileCandidateMatch(exclusion.drop, context, [...path, "exclude", i, "drop"]),
      looksAtLoad: looksAtLoad(exclusion.drop),
    })),
    select: select.map(compileStage),
    onEmpty,
    shadow,
  };
}

function compileSource(source: CandidateSource, context: CompileContext, path: Path): CompiledSource {
  const { models, backend } = source;
  return {
    listed: context.catalogue.listed(models),
    model: context.attempt([...path, "models"], () => context.catalogue.compile(models)) ?? (() => false),
    backend: backend ? compileCandidateMatch({ backend }, context, path) : ANY_BACKEND,
  };
}

const ANY_BACKEND: CandidateTest = new Conjunction([]);
