import { DESTINATION_ENDPOINT, LB_NAMESPACE } from "../../api/wire.ts";
import type { IrPool, IrProvider } from "../ir.ts";
import { extension, type Json, type JsonObject, typed } from "./typed.ts";

/** The handler itself, as Envoy reaches it. */
export const HANDLER_CLUSTER = "kinference";
const CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt";
/** uvicorn closes idle connections after 5 s; Envoy must do it first, or a request meets a closing one. */
const WORKER_IDLE_TIMEOUT = "4s";
const NO_LIMITS: JsonObject = {
  thresholds: [{ max_connections: 100_000, max_pending_requests: 100_000, max_requests: 100_000, max_retries: 1000 }],
};

/** A pool: the workers that the handler picked, in its order; without a pick, the least loaded. */
export function poolClusterConfig(pool: IrPool, edsConfig: JsonObject): JsonObject {
  return {
    name: pool.cluster,
    type: "EDS",
    eds_cluster_config: { eds_config: edsConfig, service_name: pool.cluster },
    connect_timeout: "2s",
    circuit_breakers: NO_LIMITS,
    load_balancing_policy: {
      policies: [
        {
          typed_extension_config: extension(
            "override_host",
            "extensions.load_balancing_policies.override_host.v3.OverrideHost",
            {
              // Metadata only: a header could be a client's.
              override_host_sources: [{ metadata: { key: LB_NAMESPACE, path: [{ key: DESTINATION_ENDPOINT }] } }],
              fallback_policy: {
                policies: [
                  {
                    typed_extension_config: extension(
                      "least_request",
                      "extensions.load_balancing_policies.least_request.v3.LeastRequest",
                      {},
                    ),
                  },
                ],
              },
            },
          ),
        },
      ],
    },
    typed_extension_protocol_options: httpOptions({ http_protocol_options: {} }, { idle_timeout: WORKER_IDLE_TIMEOUT }),
  };
}

/** The endpoints of a pool; they change more often than anything else. */
export function poolEndpoints(pool: IrPool): JsonObject {
  return typed("config.endpoint.v3.ClusterLoadAssignment", {
    cluster_name: pool.cluster,
    endpoints: [{ lb_endpoints: pool.endpoints.map(({ host, port }) => endpoint(host, port)) }],
  });
}

export function handlerClusterConfig(host: string, port: number): JsonObject {
  return {
    name: HANDLER_CLUSTER,
    type: "STATIC",
    connect_timeout: "1s",
    circuit_breakers: NO_LIMITS,
    load_assignment: { cluster_name: HANDLER_CLUSTER, endpoints: [{ lb_endpoints: [endpoint(host, port)] }] },
    typed_extension_protocol_options: httpOptions({
      http2_protocol_options: { initial_stream_window_size: 1 << 20, initial_connection_window_size: 16 << 20 },
    }),
  };
}

/** A provider: its own name in TLS and Host, its own credentials in place of the client's. */
export function providerClusterConfig(provider: IrProvider, secretConfig: JsonObject): JsonObject {
  const { cluster, host, port, tls, credential } = provider;
  const filters: Json[] = [
    extension("envoy.filters.http.header_mutation", "extensions.filters.http.header_mutation.v3.HeaderMutation", {
      mutations: { request_mutations: CLIENT_SECRETS.map((name) => ({ remove: name })) },
    }),
  ];
  if (credential !== undefined) filters.push(credentials(cluster, credential.header, secretConfig));
  filters.push(
    extension("envoy.filters.http.upstream_codec", "extensions.filters.http.upstream_codec.v3.UpstreamCodec", {}),
  );
  return {
    name: cluster,
    type: "STRICT_DNS",
    connect_timeout: `${provider.connectTimeoutMs / 1000}s`,
    circuit_breakers: NO_LIMITS,
    load_assignment: {
      cluster_name: cluster,
      endpoints: [
        {
          lb_endpoints: [
            {
              endpoint: {
                hostname: hostHeader(provider),
                address: { socket_address: { address: host, port_value: port } },
              },
            },
          ],
        },
      ],
    },
    ...(tls ? { transport_socket: tlsTo(host) } : {}),
    typed_extension_protocol_options: httpOptions({ http_protocol_options: {} }, {}, filters),
  };
}

/** The Host that the provider expects: with the port unless it is the scheme's own. */
function hostHeader({ host, port, tls }: IrProvider): string {
  return port === (tls ? 443 : 80) ? host : `${host}:${port}`;
}

/** What a client says of itself is for us and our workers, not for a third party. */
const CLIENT_SECRETS = [
  "authorization",
  "x-api-key",
  "api-key",
  "cookie",
  "x-forwarded-for",
  "x-kinference-cluster",
  DESTINATION_ENDPOINT,
];

/** The key is a secret of Envoy's own kind: its admin pages show `[redacted]` in its place. */
export function providerSecret(provider: IrProvider): JsonObject {
  return typed("extensions.transport_sockets.tls.v3.Secret", {
    name: provider.cluster,
    generic_secret: { secret: { inline_string: provider.credential?.value ?? "" } },
  });
}

function credentials(secretName: string, header: string, secretConfig: JsonObject): JsonObject {
  return extension(
    "envoy.filters.http.credential_injector",
    "extensions.filters.http.credential_injector.v3.CredentialInjector",
    {
      overwrite: true,
      credential: extension(
        "envoy.http.injected_credentials.generic",
        "extensions.http.injected_credentials.generic.v3.Generic",
        {
          credential: { name: secretName, sds_config: secretConfig },
          header,
        },
      ),
    },
  );
}

function tlsTo(host: string): JsonObject {
  return extension("envoy.transport_sockets.tls", "extensions.transport_sockets.tls.v3.UpstreamTlsContext", {
    sni: host,
    common_tls_context: {
      validation_context: {
        trusted_ca: { filename: CA_BUNDLE },
        match_typed_subject_alt_names: [{ san_type: "DNS", matcher: { exact: host } }],
      },
    },
  });
}

function endpoint(host: string, port: number): JsonObject {
  return { endpoint: { address: { socket_address: { address: host, port_value: port } } } };
}

function httpOptions(explicit: JsonObject, common: JsonObject = {}, filters: Json[] = []): JsonObject {
  return {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": typed(
      "extensions.upstreams.http.v3.HttpProtocolOptions",
      {
        explicit_http_config: explicit,
        common_http_protocol_options: common,
        ...(filters.length > 0 ? { http_filters: filters } : {}),
      },
    ),
  };
}
