import type { InferencePolicy, RouteAction } from "../api/inference-policy.ts";
import type { CandidateMatch, ModelSelector, RequestMatch } from "../api/request-match.ts";
import { namespaceOf, type Resource } from "../api/resource.ts";
import { suggestion } from "../api/suggestion.ts";
import type { Problem } from "../api/validate.ts";
import type { Path } from "../policy/compile-context.ts";
import { ModelCatalogue } from "../policy/model-catalogue.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import type { Finding, FindingCode } from "./finding.ts";

/** What is known to be there, for judging the names that policies use. */
export interface KnownNames {
  readonly models: readonly string[];
  /** Whether models beyond these may be there: workers' models are known only to who has asked them. */
  readonly moreModels: boolean;
  readonly providers: readonly string[];
  readonly workers: readonly string[];
}

/**
 * @param served models that workers serve, and the workers' names, if somebody has asked them
 */
export function knownNames(
  snapshot: Snapshot,
  served?: { models: readonly string[]; workers: readonly string[] },
): KnownNames {
  const declared = snapshot.models.flatMap(({ metadata, spec }) => [
    spec.modelName ?? metadata.name,
    ...(spec.aliases ?? []),
  ]);
  const outside = snapshot.providers.flatMap(({ spec }) => spec.models.map(({ name }) => name));
  const endpoints = snapshot.pools.flatMap((pool) => pool.endpoints.map(({ name }) => name));
  return {
    models: [...new Set([...declared, ...outside, ...(served?.models ?? [])])],
    moreModels: served === undefined,
    providers: snapshot.providers.map(({ metadata }) => metadata.name),
    workers: [...new Set([...endpoints, ...(served?.workers ?? [])])],
  };
}

/** Names in a policy that nobody has. */
export function nameFindings(
  policy: InferencePolicy,
  snapshot: Snapshot,
  catalogue: ModelCatalogue,
  known: KnownNames,
): Finding[] {
  const check = new NameCheck(policy, snapshot, catalogue, known);
  policy.spec.rules.forEach(({ matches = [], route }, i) => {
    const path = ["spec", "rules", i];
    matches.forEach((match, j) => {
      check.request(match, [...path, "matches", j]);
    });
    if (route !== undefined) check.route(route, [...path, "route"]);
  });
  check.targets();
  return check.findings;
}

/** Names in policies of things that are declared, and nothing else: workers and their models come and go. */
export function undeclaredNames(snapshot: Snapshot): { object: Resource; problem: Problem }[] {
  const catalogue = new ModelCatalogue(snapshot.models);
  const known = knownNames(snapshot);
  const certain: readonly FindingCode[] = ["unknown-provider", "unknown-target", "unknown-pool", "unknown-tenant"];
  return snapshot.policies
    .flatMap((policy) => nameFindings(policy, snapshot, catalogue, known))
    .filter(({ code }) => certain.includes(code))
    .map(({ object, path, message }) => ({ object, problem: { path: [...path], message } }));
}

class NameCheck {
  readonly findings: Finding[] = [];
  readonly #policy: InferencePolicy;
  readonly #snapshot: Snapshot;
  readonly #catalogue: ModelCatalogue;
  readonly #known: KnownNames;

  constructor(policy: InferencePolicy, snapshot: Snapshot, catalogue: ModelCatalogue, known: KnownNames) {
    this.#policy = policy;
    this.#snapshot = snapshot;
    this.#catalogue = catalogue;
    this.#known = known;
  }

  request({ model, tenant, pool }: RequestMatch, path: Path): void {
    if (model !== undefined) this.#models(model, [...path, "model"]);
    const tenantName = typeof tenant === "string" ? tenant : tenant?.name;
    const tenants = [...this.#snapshot.tenants.map(({ metadata }) => metadata.name), "default"];
    if (tenantName !== undefined && tenants.length > 1)
      this.#name("unknown-tenant", "InferenceTenant", tenantName, tenants, [...path, "tenant"]);
    const pools = this.#snapshot.pools.map(({ key }) => key.slice(key.indexOf("/") + 1));
    if (pool?.name !== undefined && pools.length > 0)
      this.#name("unknown-pool", "InferencePool", pool.name, pools, [...path, "pool", "name"]);
  }

  route({ consider = [], exclude = [], select = [], shadow }: RouteAction, path: Path): void {
    consider.forEach(({ models, backend }, i) => {
      this.#models(models, [...path, "consider", i, "models"]);
      this.#backend(backend?.name, backend?.type, [...path, "consider", i, "backend", "name"]);
    });
    exclude.forEach((exclusion, i) => {
      if (exclusion.if !== undefined) this.request(exclusion.if, [...path, "exclude", i, "if"]);
      this.#dropped(exclusion.drop, [...path, "exclude", i, "drop"]);
    });
    select.forEach(({ type, order = [] }, i) => {
      order.forEach((name, j) => {
        this.#backend(name, type, [...path, "select", i, "order", j]);
      });
    });
    if (shadow !== undefined) this.#models(shadow.model, [...path, "shadow", "model"]);
  }

  targets(): void {
    const { routes, gateways } = this.#snapshot;
    if (routes.length + gateways.length === 0) return;
    const namespace = namespaceOf(this.#policy);
    this.#policy.spec.targetRefs?.forEach(({ kind, name }, i) => {
      const known = (kind === "HTTPRoute" ? routes : gateways).filter((one) => namespaceOf(one) === namespace);
      const names = known.map(({ metadata }) => metadata.name);
      this.#name("unknown-target", kind, name, names, ["spec", "targetRefs", i, "name"]);
    });
  }

  #dropped({ model, backend }: CandidateMatch, path: Path): void {
    if (model !== undefined) this.#models(model, [...path, "model"]);
    this.#backend(backend?.name, backend?.type, [...path, "backend", "name"]);
  }

  #models(selector: string | ModelSelector, path: Path): void {
    const { models, moreModels } = this.#known;
    const names = typeof selector === "string" ? [selector] : (selector.names ?? []);
    names.forEach((name, i) => {
      const place = typeof selector === "string" ? path : [...path, "names", i];
      const test = this.#catalogue.compile(name);
      if (name.startsWith("class/") || name.endsWith("/*")) {
        if (this.#catalogue.resolve(name).length === 0 || this.#catalogue.names.length === 0)
          this.#add("unknown-model", place, `no InferenceModel is in the class \`${name}\``);
        return;
      }
      if (models.includes(name) || models.some(test)) return;
      const meant = suggestion(name, models);
      // Where workers' models are not known, only a likely slip of the pen is worth a word.
      if (!moreModels || meant !== "")
        this.#add("unknown-model", place, `nobody is known to serve \`${name}\`${meant}`);
    });
    if (typeof selector === "string") return;
    const { family, capability } = selector;
    for (const [field, one] of Object.entries({ family, capability })) {
      if (one === undefined) continue;
      const some = this.#catalogue.names.some(this.#catalogue.compile({ [field]: one }));
      if (!some) this.#add("unknown-model", [...path, field], `no InferenceModel has the ${field} \`${one}\``);
    }
  }

  #backend(name: string | undefined, type: string | undefined, path: Path): void {
    if (name === undefined || name.includes("*")) return;
    const { providers, workers, models, moreModels } = this.#known;
    if ([...providers, ...workers, ...models].includes(name)) return;
    if (type === "Provider") this.#name("unknown-provider", "InferenceProvider", name, providers, path);
    // Workers come and go; what is no provider may well be one of them, unless they were asked.
    else if (!moreModels || suggestion(name, providers) !== "")
      this.#name("unknown-provider", "InferenceProvider or worker", name, [...providers, ...workers], path);
  }

  #name(code: FindingCode, what: string, name: string, known: readonly string[], path: Path): void {
    if (name.includes("*") || known.includes(name)) return;
    this.#add(code, path, `no ${what} is called \`${name}\`${suggestion(name, known)}`);
  }

  #add(code: FindingCode, path: Path, message: string): void {
    this.findings.push({ severity: "warning", code, object: this.#policy, path, message });
  }
}
