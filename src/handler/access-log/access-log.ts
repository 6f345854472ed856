import { DECISION_ID, DECISION_NAMESPACE, FIRST_BODY_BYTE_TAG, USAGE_NAMESPACE } from "../../api/wire.ts";
import { normalizeUsage, type RawUsage } from "../../protocols/usage.ts";
import type { FlightEnd } from "../flight.ts";
import type { FlightTable } from "../flight-table.ts";
import type { GrpcCall } from "../grpc/grpc-server.ts";
import { loadProto, type ProtoStruct } from "../grpc/proto.ts";

const messageType = loadProto("access_log.proto").lookupType("envoy.service.accesslog.v3.StreamAccessLogsMessage");

export const ACCESS_LOG_METHOD = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs";

interface Flags {
  upstream_request_timeout?: boolean;
  upstream_remote_reset?: boolean;
  upstream_connection_failure?: boolean;
  upstream_connection_termination?: boolean;
  downstream_connection_termination?: boolean;
  stream_idle_timeout?: boolean;
  upstream_protocol_error?: boolean;
  downstream_remote_reset?: boolean;
}
interface LogEntry {
  common_properties?: {
    upstream_remote_address?: { socket_address?: { address?: string; port_value?: number } };
    response_flags?: Flags;
    metadata?: { filter_metadata?: { [namespace: string]: ProtoStruct } };
    custom_tags?: { [tag: string]: string };
    duration?: { seconds?: number | { toNumber(): number }; nanos?: number };
  };
  response?: { response_code?: { value?: number } };
}

/** Envoy's access log tells how requests ended: who served them, what they used, when the first byte came. */
export function serveAccessLog(call: GrpcCall, flights: FlightTable, now: () => number): void {
  call.onMessage = (bytes) => {
    const message = messageType.decode(bytes) as unknown as { http_logs?: { log_entry?: LogEntry[] } };
    for (const entry of message.http_logs?.log_entry ?? []) land(entry, flights, now);
  };
  call.onHalfClose = () => call.end();
}

function land(entry: LogEntry, flights: FlightTable, now: () => number): void {
  const metadata = entry.common_properties?.metadata?.filter_metadata ?? {};
  const id = metadata[DECISION_NAMESPACE]?.fields?.[DECISION_ID]?.stringValue;
  const flight = id === undefined ? undefined : flights.find(id);
  if (flight === undefined) return;
  flights.remove(flight);
  const end = readEnd(entry, metadata[USAGE_NAMESPACE]);
  flight.responseStarted(end.status, upstreamAddress(entry) ?? (end.status >= 500 ? "none" : undefined));
  flight.end(end, now());
}

function readEnd(entry: LogEntry, usage: ProtoStruct | undefined): FlightEnd {
  const flags = entry.common_properties?.response_flags ?? {};
  const duration = entry.common_properties?.duration;
  const seconds = typeof duration?.seconds === "object" ? duration.seconds.toNumber() : (duration?.seconds ?? 0);
  const firstByteUs = Number(entry.common_properties?.custom_tags?.[FIRST_BODY_BYTE_TAG]);
  return {
    status: entry.response?.response_code?.value ?? 0,
    usage: readUsage(usage),
    ...(Number.isFinite(firstByteUs) ? { ttftMs: firstByteUs / 1000 } : {}),
    ...(duration === undefined ? {} : { e2eMs: seconds * 1000 + (duration.nanos ?? 0) / 1e6 }),
    clientGone: flags.downstream_connection_termination === true || flags.downstream_remote_reset === true,
    broken:
      flags.upstream_remote_reset === true ||
      flags.upstream_connection_termination === true ||
      flags.upstream_request_timeout === true ||
      flags.upstream_protocol_error === true ||
      flags.stream_idle_timeout === true,
  };
}

function readUsage(struct: ProtoStruct | undefined) {
  const raw: RawUsage = {};
  for (const [name, value] of Object.entries(struct?.fields ?? {}))
    if (value.numberValue !== undefined) raw[name] = value.numberValue;
  return normalizeUsage(raw);
}

function upstreamAddress(entry: LogEntry): string | undefined {
  const socket = entry.common_properties?.upstream_remote_address?.socket_address;
  if (socket?.address === undefined) return undefined;
  const host = socket.address.includes(":") ? `[${socket.address}]` : socket.address;
  return `${host}:${socket.port_value ?? 0}`;
}
