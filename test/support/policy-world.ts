import type { InferencePolicy, PolicyRule } from "../../src/api/inference-policy.ts";
import { compilePolicies } from "../../src/policy/compile.ts";
import { decide } from "../../src/policy/decide.ts";
import { type CandidateSupply, evaluate, type PolicyDecision } from "../../src/policy/evaluate.ts";
import type { Candidate, RequestFacts, Verdict } from "../../src/policy/facts.ts";
import { ModelCatalogue } from "../../src/policy/model-catalogue.ts";
import { MOMENTS, type World } from "./naive-policy.ts";

// Requests, candidates and rules for tests of the policy engine.

export function candidate(name: string, more: Partial<Candidate> = {}): Candidate {
  return {
    model: "glm-5.3",
    type: "Local",
    name,
    labels: {},
    healthy: true,
    queuedPrompts: 0,
    runningPrompts: 0,
    kvCacheUsage: 0,
    errorRate: 0,
    predictedTtftMs: 100,
    predictedE2eMs: 1000,
    harmMs: 0,
    cachedTokens: 0,
    cost: 0,
    ...more,
  };
}

export function provider(name: string, more: Partial<Candidate> = {}): Candidate {
  return candidate(name, {
    type: "Provider",
    queuedPrompts: undefined,
    runningPrompts: undefined,
    kvCacheUsage: undefined,
    predictedTtftMs: 800,
    ...more,
  });
}

export function facts(more: Partial<RequestFacts> & { tags?: Record<string, Verdict> } = {}): RequestFacts {
  const { tags = {}, ...rest } = more;
  return {
    api: "chat",
    path: "/v1/chat/completions",
    model: "glm-5.3",
    askedModel: "glm-5.3",
    tenant: "default",
    tenantLabels: {},
    stream: false,
    promptTokens: 100,
    offersTools: false,
    imageCount: 0,
    headers: new Map(),
    conversationPercent: 50,
    epochMs: Date.UTC(2026, 10, 30, 12, 0),
    hasTag: (tag) => (tag in tags ? tags[tag] : false),
    pool: () => ({ queuedPrompts: 0, runningPrompts: 0, kvCacheUsage: 0, healthyWorkers: 1 }),
    ...rest,
  };
}

export function policyOf(
  rules: PolicyRule[],
  name = "p",
  more: Partial<InferencePolicy["spec"]> = {},
): InferencePolicy {
  return {
    apiVersion: "kinference.buoyant.io/v1alpha1",
    kind: "InferencePolicy",
    metadata: { name },
    spec: { ...more, rules },
  };
}

export function compileRules(policies: readonly InferencePolicy[], catalogue = new ModelCatalogue([])) {
  return compilePolicies(policies, catalogue).flatMap((policy) => policy.rules);
}

export function supplyOf(
  candidates: readonly Candidate[],
  exceeds: CandidateSupply<Candidate>["exceeds"] = () => undefined,
): CandidateSupply<Candidate> {
  return {
    of: (model) => candidates.filter((one) => one.model === model),
    servedModels: () => [...new Set(candidates.map((one) => one.model))],
    exceeds,
  };
}

/** A decision in a line: `rule: a > b > c`, or why not. */
export function inWords(decision: PolicyDecision<Candidate>): string {
  const { rule } = decision;
  if (decision.kind === "route") return `${rule}: ${decision.ranking.map((one) => one.name).join(" > ")}`;
  if (decision.kind === "reject") return `${rule}: rejected ${decision.reject.status ?? 403}`;
  return `${rule}: ${decision.kind === "limited" ? "limited" : decision.cause}`;
}

export function outcome(
  rules: ReturnType<typeof compileRules>,
  request: RequestFacts,
  candidates: Candidate[],
): string {
  return inWords(evaluate(rules, request, supplyOf(candidates)));
}

/** A random world's outcome, as `naiveOutcome` words it. */
export function compiledOutcome(world: World): string {
  const { tools, images, headers, percent, tags, maxTokens, api, ...request } = world.request;
  const facts: RequestFacts = {
    ...request,
    api: api as RequestFacts["api"],
    model: request.askedModel,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    offersTools: tools,
    imageCount: images ? 1 : 0,
    headers: new Map(Object.entries(headers)),
    conversationPercent: percent,
    epochMs: MOMENTS[world.moment] ?? 0,
    hasTag: (tag) => tags[tag],
    pool: (name) =>
      world.pools[name ?? ""] ?? { queuedPrompts: 0, runningPrompts: 0, kvCacheUsage: 0, healthyWorkers: 0 },
  };
  const catalogue = new ModelCatalogue(world.models);
  const policies = compilePolicies(world.policies, catalogue);
  for (const { problems } of policies) if (problems.length > 0) throw new Error(JSON.stringify(problems));
  const rules = policies.flatMap((policy) => policy.rules);
  const supply = supplyOf(world.candidates, ({ limit }) =>
    world.reached.includes(limit.name.replace("default/", "")) ? 1000 : undefined,
  );
  const { decision } = decide(rules, facts, catalogue.resolve(facts.askedModel), supply);
  if (decision.kind === "route")
    return `${decision.rule}: ${decision.ranking.map((c) => `${c.model}@${c.name}`).join(" ")}`;
  if (decision.kind === "empty") return `${decision.rule}: ${decision.cause}`;
  return `${decision.rule}: ${decision.kind === "reject" ? "rejected" : "limited"}`;
}
