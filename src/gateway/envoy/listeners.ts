import {
  ACROSS_CLUSTERS_METADATA,
  CLUSTER_HEADER,
  DECISION_NAMESPACE,
  DESTINATION_ENDPOINT,
  FIRST_BODY_BYTE_TAG,
  LB_NAMESPACE,
  OBSERVE_METADATA,
  ROUTE_NAMESPACE,
} from "../../api/wire.ts";
import type { IrListener } from "../ir.ts";
import { HANDLER_CLUSTER } from "./clusters.ts";
import { extension, type Json, type JsonObject } from "./typed.ts";
import { usageFilters } from "./usage-filters.ts";
import type { EnvoyFeatures } from "./version.ts";

/** Requests this much larger than the handler's limit still reach it, so that the handler refuses them in the client's shape. */
const BUFFER_HEADROOM_BYTES = 1 << 20;

export interface ListenerSettings {
  features: EnvoyFeatures;
  maxBodyBytes: number;
  routesConfig: JsonObject;
}

export function listenerConfig(listener: IrListener, settings: ListenerSettings): JsonObject {
  return {
    name: listener.name,
    address: { socket_address: { address: listener.address, port_value: listener.port } },
    per_connection_buffer_limit_bytes: settings.maxBodyBytes + BUFFER_HEADROOM_BYTES,
    filter_chains: [
      {
        filters: [
          extension(
            "envoy.filters.network.http_connection_manager",
            "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            connectionManager(listener, settings),
          ),
        ],
      },
    ],
  };
}

function connectionManager(listener: IrListener, settings: ListenerSettings): JsonObject {
  const { features } = settings;
  return {
    stat_prefix: "inference",
    use_remote_address: true,
    // By it a client's request is found again: `kinfctl explain --request-id`.
    always_set_request_id_in_response: true,
    stream_idle_timeout: "3600s",
    rds: { route_config_name: listener.name, config_source: settings.routesConfig },
    early_header_mutation_extensions: [stripClientHeaders()],
    http_filters: [
      externalProcessor(features),
      ...(features.usageFilters ? usageFilters() : []),
      extension("envoy.filters.http.router", "extensions.filters.http.router.v3.Router", {}),
    ],
    ...(features.usageFilters ? { access_log: [accessLog()] } : {}),
    local_reply_config: { mappers: localReplies() },
  };
}

/** Headers by which a client could choose its route or change Envoy's behaviour. */
const CLIENT_MUST_NOT_SET = [
  CLUSTER_HEADER,
  DESTINATION_ENDPOINT,
  "x-envoy-retry-on",
  "x-envoy-retry-grpc-on",
  "x-envoy-max-retries",
  "x-envoy-retriable-status-codes",
  "x-envoy-retriable-header-names",
  "x-envoy-hedge-on-per-try-timeout",
  "x-envoy-upstream-rq-timeout-ms",
  "x-envoy-upstream-rq-per-try-timeout-ms",
  "x-envoy-upstream-alt-stat-name",
  "x-envoy-decorator-operation",
  "x-envoy-original-path",
];

function stripClientHeaders(): JsonObject {
  return extension(
    "envoy.http.early_header_mutation.header_mutation",
    "extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
    {
      mutations: CLIENT_MUST_NOT_SET.map((name) => ({ remove: name })),
    },
  );
}

function externalProcessor(features: EnvoyFeatures): JsonObject {
  return extension("envoy.filters.http.ext_proc", "extensions.filters.http.ext_proc.v3.ExternalProcessor", {
    grpc_service: {
      envoy_grpc: { cluster_name: HANDLER_CLUSTER },
      initial_metadata: [
        { key: OBSERVE_METADATA, value: features.usageFilters ? "access-log" : "in-stream" },
        { key: ACROSS_CLUSTERS_METADATA, value: String(features.priorityGroups) },
      ],
    },
    processing_mode: {
      request_header_mode: "SEND",
      request_body_mode: "FULL_DUPLEX_STREAMED",
      request_trailer_mode: "SEND",
      response_header_mode: "SEND",
      response_body_mode: "STREAMED",
      response_trailer_mode: "SKIP",
    },
    request_attributes: ["xds.route_name"],
    response_attributes: ["upstream.address"],
    metadata_options: { receiving_namespaces: { untyped: [LB_NAMESPACE, DECISION_NAMESPACE, ROUTE_NAMESPACE] } },
    message_timeout: "30s",
  });
}

function accessLog(): JsonObject {
  return extension("envoy.access_loggers.http_grpc", "extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig", {
    common_config: {
      log_name: "kinference",
      transport_api_version: "V3",
      grpc_service: { envoy_grpc: { cluster_name: HANDLER_CLUSTER } },
      // Load that has ended should not weigh on the next pick for long.
      buffer_flush_interval: "0.010s",
      custom_tags: [{ tag: FIRST_BODY_BYTE_TAG, value: "%COMMON_DURATION(DS_RX_BEG:US_RX_BODY_BEG:us)%" }],
    },
  });
}

/** Envoy's own errors, in the shapes that clients parse. What the handler answered is left as it is. */
function localReplies(): Json[] {
  const openai = {
    error: { message: "%LOCAL_REPLY_BODY%", type: "server_error", param: null, code: "%RESPONSE_CODE_DETAILS%" },
  };
  const anthropic = { type: "error", error: { type: "api_error", message: "%LOCAL_REPLY_BODY%" } };
  return [localReply([NOT_THE_HANDLERS, ANTHROPIC_PATH], anthropic), localReply([NOT_THE_HANDLERS], openai)];
}

const NOT_THE_HANDLERS: JsonObject = {
  extension_filter: extension(
    "envoy.access_loggers.extension_filters.cel",
    "extensions.access_loggers.filters.cel.v3.ExpressionFilter",
    {
      expression: "!response.code_details.contains('kinference_answer')",
    },
  ),
};
const ANTHROPIC_PATH: JsonObject = {
  header_filter: { header: { name: ":path", string_match: { prefix: "/v1/messages" } } },
};

function localReply(filters: JsonObject[], json: JsonObject): JsonObject {
  const [only] = filters;
  return {
    filter: filters.length === 1 && only !== undefined ? only : { and_filter: { filters } },
    body_format_override: { json_format: json, content_type: "application/json" },
  };
}
