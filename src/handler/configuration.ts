import type { RequestMatch } from "../api/inference-policy.ts";
import { keyOf, namespaceOf, type Resource } from "../api/resource.ts";
import { type Problem, suggestion } from "../api/validate.ts";
import { KNOWN_TAGS } from "../classify/tags.ts";
import { type CompiledPolicy, type CompiledRule, compilePolicies } from "../policy/compile.ts";
import { Provider } from "../providers/provider.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import { TenantDirectory } from "../tenancy/tenant-directory.ts";

/** A snapshot compiled for the request path. Immutable: a request is decided by one configuration from start to end. */
export interface Configuration {
  readonly tenants: TenantDirectory;
  readonly providers: readonly Provider[];
  /** By Envoy's route name; the scope under "" serves routes that are not named. */
  readonly scopes: ReadonlyMap<string, RouteScope>;
}

/** What applies to the requests of one route. */
export interface RouteScope {
  readonly rules: readonly CompiledRule[];
  /** Undefined: all pools. */
  readonly pools: ReadonlySet<string> | undefined;
}

export function compileConfiguration(snapshot: Snapshot): Configuration {
  const policies = compilePolicies(snapshot.policies);
  const scopes = new Map<string, RouteScope>();
  // Requests of no known route meet every policy that is not bound to a route: a guard must not be lost with a name.
  scopes.set("", { rules: rulesOf(policies.filter((policy) => policy.targetRefs.length === 0)), pools: undefined });
  for (const route of snapshot.routes) {
    const gateways = (route.spec.parentRefs ?? []).map((ref) => ref.name);
    const applying = policies.filter((policy) => appliesTo(policy, namespaceOf(route), route.metadata.name, gateways));
    const pools = route.spec.rules.flatMap((rule) =>
      rule.backendRefs.map((ref) => `${ref.namespace ?? namespaceOf(route)}/${ref.name}`),
    );
    scopes.set(keyOf(route), { rules: rulesOf(applying), pools: new Set(pools) });
  }
  const tenants = snapshot.tenants.map((tenant) => {
    const secret = snapshot.secrets.get(`${namespaceOf(tenant)}/${tenant.spec.apiKeyHashesRef?.name}`);
    return { name: tenant.metadata.name, apiKeyDigests: [...(secret?.values() ?? [])] };
  });
  return {
    tenants: new TenantDirectory(tenants),
    providers: snapshot.providers.map((provider) => new Provider(provider)),
    scopes,
  };
}

function rulesOf(policies: readonly CompiledPolicy[]): CompiledRule[] {
  return policies.flatMap((policy) => policy.rules);
}

function appliesTo(policy: CompiledPolicy, namespace: string, route: string, gateways: readonly string[]): boolean {
  if (policy.namespace !== namespace) return false;
  if (policy.targetRefs.length === 0) return true;
  return policy.targetRefs.some((ref) => (ref.kind === "HTTPRoute" ? ref.name === route : gateways.includes(ref.name)));
}

/** Mistakes that only the handler can see: tags that nothing computes, providers that do not exist. */
export function configurationProblems(snapshot: Snapshot): { object: Resource; problem: Problem }[] {
  const problems: { object: Resource; problem: Problem }[] = [];
  for (const policy of snapshot.policies) {
    const report = (path: (string | number)[], message: string) =>
      problems.push({ object: policy, problem: { path, message } });
    policy.spec.rules.forEach((rule, r) => {
      rule.matches?.forEach((match, m) => {
        reportUnknownTags(match, ["spec", "rules", r, "matches", m], report);
      });
      rule.route?.exclude?.forEach((exclusion, e) => {
        if (exclusion.if) reportUnknownTags(exclusion.if, ["spec", "rules", r, "route", "exclude", e, "if"], report);
      });
    });
  }
  return problems;
}

function reportUnknownTags(
  match: RequestMatch,
  path: (string | number)[],
  report: (path: (string | number)[], message: string) => void,
): void {
  const named: [string, string][] = [
    ...(match.tag === undefined ? [] : [["tag", match.tag] as [string, string]]),
    ...(match.tags ?? []).map((tag): [string, string] => ["tags", tag]),
    ...(match.anyTag ?? []).map((tag): [string, string] => ["anyTag", tag]),
  ];
  for (const [field, tag] of named) {
    if (!KNOWN_TAGS.includes(tag))
      report([...path, field], `unknown tag \`${tag}\`${suggestion(tag, [...KNOWN_TAGS])}`);
  }
}
