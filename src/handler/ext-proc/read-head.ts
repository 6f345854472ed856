import {
  ACROSS_CLUSTERS_METADATA,
  OBSERVE_METADATA,
  type ObserveMode,
  SUBSET_KEY,
  SUBSET_NAMESPACE,
} from "../../api/wire.ts";
import type { GrpcCall } from "../grpc/grpc-server.ts";
import type { ProtoValue } from "../grpc/proto.ts";
import type { RequestHead } from "../request-head.ts";
import { attribute, metadataValue, type ProcessingRequest, readHeaders, type WireHeaders } from "./messages.ts";

/** Collects what the first message of a call says of the request. */
export function readHead(call: GrpcCall, message: ProcessingRequest, wire: WireHeaders): RequestHead {
  const headers = readHeaders(wire);
  const target = headers.get(":path") ?? "/";
  const query = target.indexOf("?");
  return {
    method: headers.get(":method") ?? "",
    path: query < 0 ? target : target.slice(0, query),
    headers,
    observe: observeMode(call.metadata(OBSERVE_METADATA)),
    acrossClusters: call.metadata(ACROSS_CLUSTERS_METADATA) === "true",
    routeName: attribute(message, "xds.route_name"),
    claim: (name) => verifiedClaim(message, name),
    subset: readSubset(metadataValue(message, SUBSET_NAMESPACE, SUBSET_KEY)),
  };
}

function observeMode(value: string | undefined): ObserveMode | undefined {
  return value === "access-log" || value === "in-stream" ? value : undefined;
}

const JWT_NAMESPACE = "envoy.filters.http.jwt_authn";

/** Envoy's JWT filter puts the payload of a verified token under a key of the operator's choice. */
function verifiedClaim(message: ProcessingRequest, name: string): string | undefined {
  const payloads = Object.values(message.metadata_context?.filter_metadata?.[JWT_NAMESPACE]?.fields ?? {});
  return payloads
    .map((payload) => payload.structValue?.fields?.[name]?.stringValue)
    .find((value) => value !== undefined);
}

/** A list of strings, or one string with commas. Set but empty is a subset that nobody is in. */
function readSubset(value: ProtoValue | undefined): string[] | undefined {
  if (value === undefined) return undefined;
  const listed = value.listValue?.values?.map((item) => item.stringValue ?? "") ?? (value.stringValue ?? "").split(",");
  return listed.map((item) => item.trim()).filter((item) => item !== "");
}
