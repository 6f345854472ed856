import { CLUSTER_HEADER, ROUTE_NAMESPACE } from "../../api/wire.ts";
import type { IrHost, IrListener, IrRoute } from "../ir.ts";
import { extension, type Json, type JsonObject, typed } from "./typed.ts";
import type { EnvoyFeatures } from "./version.ts";

/** The choice and its fallbacks: the handler names at most one more than this. */
const RETRIES = 3;
const RETRY_POLICY: JsonObject = {
  retry_on: "connect-failure,refused-stream,reset-before-request,retriable-status-codes",
  retriable_status_codes: [429, 503],
  num_retries: RETRIES,
  retry_back_off: { base_interval: "0.001s", max_interval: "0.010s" },
};

/** The routes of a listener. They change without its connections being drained. */
export function routeConfig(listener: IrListener, features: EnvoyFeatures): JsonObject {
  return typed("config.route.v3.RouteConfiguration", {
    name: listener.name,
    virtual_hosts: listener.hosts.map((host) => virtualHost(host, features)),
  });
}

function virtualHost(host: IrHost, features: EnvoyFeatures): JsonObject {
  return {
    name: host.name,
    domains: [...host.domains],
    routes: host.routes.flatMap((route) => (features.priorityGroups ? [groupedRoute(route)] : headerRoutes(route))),
  };
}

/** Envoy 1.40: each attempt goes to the next cluster of the list in the request's metadata. */
function groupedRoute(route: IrRoute): JsonObject {
  const groups: Json = [
    { name: "default", clusters: route.pools.map(({ cluster, weight }) => ({ cluster_name: cluster, weight })) },
  ];
  return routeTo(route, [], {
    inline_cluster_specifier_plugin: {
      extension: extension(
        "envoy.router.cluster_specifier_plugin.priority_group",
        "extensions.router.cluster_specifiers.priority_group.v3.PriorityGroupClusterSpecifier",
        { priority_groups: groups, override_metadata_namespace: ROUTE_NAMESPACE },
      ),
    },
    retry_policy: { ...RETRY_POLICY, refresh_cluster_on_retry: true },
  });
}

/** Older Envoys: the handler names one cluster in a header; fallbacks stay inside it. */
function headerRoutes(route: IrRoute): JsonObject[] {
  const named = { name: CLUSTER_HEADER, present_match: true };
  const [first] = route.pools;
  const weighted = {
    weighted_clusters: { clusters: route.pools.map(({ cluster, weight }) => ({ name: cluster, weight })) },
  };
  const fallback = route.pools.length === 1 && first !== undefined ? { cluster: first.cluster } : weighted;
  return [
    routeTo(route, [named], { cluster_header: CLUSTER_HEADER, retry_policy: RETRY_POLICY }),
    routeTo(route, [], { ...fallback, retry_policy: RETRY_POLICY }),
  ];
}

function routeTo(route: IrRoute, headers: JsonObject[], action: JsonObject): JsonObject {
  const { path, exact, headers: wanted } = route.match;
  const matchHeaders = [...headers, ...wanted.map(({ name, value }) => ({ name, string_match: { exact: value } }))];
  // A provider's name replaces the client's Host; a worker has none and keeps it.
  const common = { timeout: "0s", idle_timeout: "3600s", auto_host_rewrite: true };
  return {
    name: route.name,
    match: { ...pathMatch(path, exact), ...(matchHeaders.length > 0 ? { headers: matchHeaders } : {}) },
    ...(route.pools.length === 0 ? { direct_response: { status: 503 } } : { route: { ...common, ...action } }),
    ...(route.failOpen ? { typed_per_filter_config: { "envoy.filters.http.ext_proc": failOpen() } } : {}),
  };
}

/** Gateway API's PathPrefix matches whole path elements, trailing slash or not. */
function pathMatch(path: string, exact: boolean): JsonObject {
  if (exact) return { path };
  const trimmed = path.replace(/\/+$/, "");
  return trimmed === "" ? { prefix: "/" } : { path_separated_prefix: trimmed };
}

/** Envoy can go on without the handler only if it still has the whole body: buffered, not full duplex. */
function failOpen(): JsonObject {
  return typed("extensions.filters.http.ext_proc.v3.ExtProcPerRoute", {
    overrides: {
      processing_mode: {
        request_header_mode: "SEND",
        request_body_mode: "BUFFERED",
        request_trailer_mode: "SKIP",
        response_header_mode: "SEND",
        response_body_mode: "STREAMED",
        response_trailer_mode: "SKIP",
      },
      failure_mode_allow: true,
    },
  });
}
