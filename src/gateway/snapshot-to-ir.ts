import type { InferenceProvider } from "../api/inference-provider.ts";
import { parseQuantity } from "../api/quantity.ts";
import { keyOf, namespaceOf } from "../api/resource.ts";
import type { Gateway, HTTPRoute } from "../api/standard-kinds.ts";
import { poolCluster, providerCluster } from "../api/wire.ts";
import { endpointOf, keyHeaderOf } from "../providers/provider.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import type { GatewayIr, IrHost, IrListener, IrProvider, IrRoute } from "./ir.ts";

/** Where traffic is taken when no Gateway says so, and for the addresses of those that do. */
export interface ListenAddress {
  address: string;
  port: number;
}

/** Translates declared resources into what the gateway is to do. Pure. */
export function snapshotToIr(snapshot: Snapshot, listen: ListenAddress): GatewayIr {
  const listeners =
    snapshot.gateways.length > 0
      ? snapshot.gateways.flatMap((gateway) => gatewayListeners(gateway, snapshot, listen))
      : [];
  return {
    listeners:
      listeners.length > 0
        ? listeners
        : [{ name: "default", ...listen, hosts: hostsOf(snapshot.routes, snapshot, undefined) }],
    pools: snapshot.pools.map((pool) => ({
      cluster: poolCluster(pool.key),
      endpoints: pool.endpoints.map(({ host, port }) => ({ host, port })),
    })),
    providers: snapshot.providers.map((provider) => providerToIr(provider, snapshot)),
  };
}

function gatewayListeners(gateway: Gateway, snapshot: Snapshot, listen: ListenAddress): IrListener[] {
  return gateway.spec.listeners.map((listener) => {
    const routes = snapshot.routes.filter((route) =>
      (route.spec.parentRefs ?? []).some(
        (ref) =>
          ref.name === gateway.metadata.name &&
          (ref.namespace ?? namespaceOf(route)) === namespaceOf(gateway) &&
          (ref.sectionName === undefined || ref.sectionName === listener.name),
      ),
    );
    return {
      name: `${keyOf(gateway)}/${listener.name}`,
      address: listen.address,
      port: listener.port,
      hosts: hostsOf(routes, snapshot, listener.hostname),
    };
  });
}

/** Routes by hostname; without any HTTPRoute at all, one default route to every pool. */
function hostsOf(routes: readonly HTTPRoute[], snapshot: Snapshot, hostname: string | undefined): IrHost[] {
  if (snapshot.routes.length === 0) {
    const pools = snapshot.pools.map((pool) => ({ cluster: poolCluster(pool.key), weight: 1 }));
    const failOpen = snapshot.pools.length > 0 && snapshot.pools.every((pool) => pool.failOpen);
    const route: IrRoute = { name: "", match: { path: "/", exact: false, headers: [] }, pools, failOpen };
    return [{ name: "default", domains: [hostname ?? "*"], routes: [route] }];
  }
  const byDomain = new Map<string, IrRoute[]>();
  for (const route of routes) {
    for (const domain of route.spec.hostnames ?? [hostname ?? "*"]) {
      byDomain.set(domain, [...(byDomain.get(domain) ?? []), ...routeRules(route, snapshot)]);
    }
  }
  return [...byDomain].map(([domain, rules]) => ({ name: domain, domains: [domain], routes: rules.sort(precedence) }));
}

function routeRules(route: HTTPRoute, snapshot: Snapshot): IrRoute[] {
  return route.spec.rules.flatMap((rule) => {
    const keys = rule.backendRefs.map((ref) => `${ref.namespace ?? namespaceOf(route)}/${ref.name}`);
    const pools = rule.backendRefs.map((ref, i) => ({ cluster: poolCluster(keys[i] ?? ""), weight: ref.weight ?? 1 }));
    const failOpen = keys.every((key) => snapshot.pools.find((pool) => pool.key === key)?.failOpen === true);
    return (rule.matches ?? [{}]).map((match) => ({
      name: keyOf(route),
      match: {
        path: match.path?.value ?? "/",
        exact: match.path?.type === "Exact",
        headers: (match.headers ?? []).map(({ name, value }) => ({ name: name.toLowerCase(), value })),
      },
      pools,
      failOpen,
    }));
  });
}

/** Gateway API: exact paths before prefixes, longer before shorter, then more header matches. */
function precedence(a: IrRoute, b: IrRoute): number {
  if (a.match.exact !== b.match.exact) return a.match.exact ? -1 : 1;
  return b.match.path.length - a.match.path.length || b.match.headers.length - a.match.headers.length;
}

function providerToIr(provider: InferenceProvider, snapshot: Snapshot): IrProvider {
  const { type, credentialsRef: ref, connectTimeout = "5s" } = provider.spec;
  const url = new URL(endpointOf(provider.spec));
  const tls = url.protocol === "https:";
  const key = ref && snapshot.secrets.get(`${namespaceOf(provider)}/${ref.name}`)?.get(ref.key ?? "apiKey");
  const { name, prefix } = keyHeaderOf(type);
  return {
    cluster: providerCluster(keyOf(provider)),
    host: url.hostname,
    port: url.port === "" ? (tls ? 443 : 80) : Number(url.port),
    tls,
    connectTimeoutMs: parseQuantity(connectTimeout),
    credential: key === undefined ? undefined : { header: name, value: prefix + key },
  };
}
