import type { Price } from "../api/inference-provider.ts";
import { parseQuantity } from "../api/quantity.ts";
import { keyOf, namespaceOf, type Resource } from "../api/resource.ts";
import type { HTTPRoute } from "../api/standard-kinds.ts";
import { suggestion } from "../api/suggestion.ts";
import type { Problem } from "../api/validate.ts";
import { compileOwnTag, type OwnTag } from "../classify/own-tag.ts";
import { BUILT_IN_TAGS, type OwnTags, prepareClassifiers } from "../classify/tags.ts";
import { type CompiledPolicy, type CompiledRule, compilePolicies } from "../policy/compile.ts";
import { ownTagId } from "../policy/compile-context.ts";
import { ModelCatalogue } from "../policy/model-catalogue.ts";
import { Provider } from "../providers/provider.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import { type Tenant, TenantDirectory, type TenantIdentity } from "../tenancy/tenant-directory.ts";

/** A snapshot compiled for the request path. Immutable: a request is decided by one configuration from start to end. */
export interface Configuration {
  readonly tenants: TenantDirectory;
  readonly providers: readonly Provider[];
  /** Whether there are to be local workers. */
  readonly hasPools: boolean;
  readonly catalogue: ModelCatalogue;
  /** What local models cost, where an InferenceModel says so. */
  readonly prices: ReadonlyMap<string, Price>;
  /** Tags that policies define. */
  readonly ownTags: OwnTags;
  /** By Envoy's route name; the scope under "" serves routes that are not named. */
  readonly scopes: ReadonlyMap<string, RouteScope>;
  /** The tenant's own limits as rules that come before all others. */
  tenantRules(tenant: Tenant): readonly CompiledRule[];
}

/** What applies to the requests of one route. */
export interface RouteScope {
  readonly rules: readonly CompiledRule[];
  /** Undefined: all pools. */
  readonly pools: ReadonlySet<string> | undefined;
}

/** @param trustedHeaders headers by which a gateway in front may name the tenant */
export function compileConfiguration(snapshot: Snapshot, trustedHeaders: readonly string[] = []): Configuration {
  const catalogue = new ModelCatalogue(snapshot.models);
  const policies = compilePolicies(snapshot.policies, catalogue);
  prepareClassifiers(policies.flatMap(({ usedTags }) => usedTags.map(({ tag }) => tag)));
  const identities = snapshot.tenants.map((tenant) => identityOf(tenant, snapshot));
  const tenantRules = new Map(identities.map(({ tenant }) => [tenant.name, limitsAsRules(tenant)]));
  return {
    tenants: new TenantDirectory(identities, trustedHeaders),
    providers: snapshot.providers.map((provider) => new Provider(provider)),
    hasPools: snapshot.pools.length > 0,
    catalogue,
    prices: new Map(
      snapshot.models.flatMap(({ metadata, spec }) =>
        spec.price === undefined ? [] : [[spec.modelName ?? metadata.name, spec.price] as const],
      ),
    ),
    ownTags: new Map(policies.flatMap((policy) => compileTags(policy).tags)),
    scopes: compileScopes(snapshot, policies),
    tenantRules: ({ name }) => tenantRules.get(name) ?? [],
  };
}

function compileScopes(snapshot: Snapshot, policies: readonly CompiledPolicy[]): Map<string, RouteScope> {
  const scopes = new Map<string, RouteScope>();
  // Requests of no known route meet every policy that is not bound to a route: a guard must not be lost with a name.
  scopes.set("", { rules: rulesOf(policies.filter((policy) => policy.targetRefs.length === 0)), pools: undefined });
  for (const route of snapshot.routes) {
    const applying = policies.filter((policy) => appliesTo(policy, route));
    const pools = route.spec.rules.flatMap((rule) =>
      (rule.backendRefs ?? []).map((ref) => `${ref.namespace ?? namespaceOf(route)}/${ref.name}`),
    );
    scopes.set(keyOf(route), { rules: rulesOf(applying), pools: new Set(pools) });
  }
  return scopes;
}

function rulesOf(policies: readonly CompiledPolicy[]): CompiledRule[] {
  return policies.flatMap((policy) => policy.rules);
}

/** A Gateway may be in another namespace than its routes: then it is that namespace's policies that name it. */
function appliesTo({ namespace, targetRefs }: CompiledPolicy, route: HTTPRoute): boolean {
  const routeNamespace = namespaceOf(route);
  if (targetRefs.length === 0) return namespace === routeNamespace;
  return targetRefs.some(({ kind, name }) =>
    kind === "HTTPRoute"
      ? namespace === routeNamespace && name === route.metadata.name
      : (route.spec.parentRefs ?? []).some(
          (parent) => parent.name === name && (parent.namespace ?? routeNamespace) === namespace,
        ),
  );
}

function identityOf(resource: Snapshot["tenants"][number], snapshot: Snapshot): TenantIdentity {
  const { apiKeyHashesRef, jwtClaim, header, limits = [] } = resource.spec;
  const secret = snapshot.secrets.get(`${namespaceOf(resource)}/${apiKeyHashesRef?.name}`);
  return {
    tenant: { name: resource.metadata.name, labels: resource.metadata.labels ?? {}, limits },
    apiKeyDigests: [...(secret?.values() ?? [])],
    ...(jwtClaim ? { jwtClaim } : {}),
    ...(header ? { header } : {}),
  };
}

/** A tenant's limit is a rule that only charges. */
function limitsAsRules({ name, limits }: Tenant): CompiledRule[] {
  return limits.map((limit, i) => ({
    key: `tenant ${name}`,
    name: `tenant ${name}`,
    matches: undefined,
    route: undefined,
    reject: undefined,
    limit: {
      name: `tenant ${name} limit ${i}`,
      tokens: limit.tokens,
      quantity: parseQuantity(limit.quantity),
      windowMs: parseQuantity(limit.window),
      onExceed: "Reject",
      subject: () => name,
    },
  }));
}

interface CompiledTags {
  tags: [id: string, tag: OwnTag][];
  problems: Problem[];
}

function compileTags(policy: CompiledPolicy): CompiledTags {
  const tags: [string, OwnTag][] = [];
  const problems: Problem[] = [];
  for (const [i, definition] of policy.tags.entries()) {
    try {
      const timeoutMs = parseQuantity(definition.http?.timeout ?? "100ms");
      tags.push([ownTagId(definition.name, policy.key), compileOwnTag(definition, timeoutMs)]);
    } catch (error) {
      problems.push({ path: ["spec", "tags", i], message: (error as Error).message });
    }
  }
  return { tags, problems };
}

/** Mistakes in policies that only compiling them finds: expressions, selectors, time zones, tags that nothing computes. */
export function configurationProblems(snapshot: Snapshot): { object: Resource; problem: Problem }[] {
  const byKey = new Map(snapshot.policies.map((policy) => [keyOf(policy), policy]));
  return compilePolicies(snapshot.policies, new ModelCatalogue(snapshot.models)).flatMap((compiled) => {
    const object = byKey.get(compiled.key);
    if (object === undefined) return [];
    const known = [...compiled.tags.map((tag) => tag.name), ...BUILT_IN_TAGS];
    const unknownTags = compiled.usedTags
      .filter(({ tag }) => !known.includes(tag))
      .map(({ tag, path }) => ({ path: [...path], message: `unknown tag \`${tag}\`${suggestion(tag, known)}` }));
    return [...compiled.problems, ...compileTags(compiled).problems, ...unknownTags].map((problem) => ({
      object,
      problem,
    }));
  });
}
