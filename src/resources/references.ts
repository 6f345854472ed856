import { namespaceOf, type Resource } from "../api/resource.ts";
import { suggestion } from "../api/suggestion.ts";
import type { Problem } from "../api/validate.ts";
import type { Snapshot } from "./snapshot.ts";

/** Problems that only show when objects are read together: names that nothing has. */
export function referenceProblems(snapshot: Snapshot): { object: Resource; problem: Problem }[] {
  const problems: { object: Resource; problem: Problem }[] = [];
  const pools = snapshot.pools.map((pool) => pool.key);
  for (const route of snapshot.routes) {
    route.spec.rules.forEach((rule, i) => {
      rule.backendRefs.forEach((ref, j) => {
        const key = `${ref.namespace ?? namespaceOf(route)}/${ref.name}`;
        if (pools.includes(key)) return;
        const message = `no InferencePool ${key}${suggestion(key, pools)}`;
        problems.push({ object: route, problem: { path: ["spec", "rules", i, "backendRefs", j, "name"], message } });
      });
    });
  }
  for (const provider of snapshot.providers) {
    const ref = provider.spec.credentialsRef;
    if (ref === undefined) continue;
    const secret = snapshot.secrets.get(`${namespaceOf(provider)}/${ref.name}`);
    if (secret?.has(ref.key ?? "apiKey")) continue;
    const message = `no Secret ${namespaceOf(provider)}/${ref.name} with a value \`${ref.key ?? "apiKey"}\``;
    problems.push({ object: provider, problem: { path: ["spec", "credentialsRef"], message } });
  }
  for (const tenant of snapshot.tenants) {
    const ref = tenant.spec.apiKeyHashesRef;
    if (ref === undefined || snapshot.secrets.has(`${namespaceOf(tenant)}/${ref.name}`)) continue;
    const message = `no Secret ${namespaceOf(tenant)}/${ref.name}`;
    problems.push({ object: tenant, problem: { path: ["spec", "apiKeyHashesRef"], message } });
  }
  return problems;
}
