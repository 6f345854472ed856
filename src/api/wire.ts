/** Names that the handler and the gateway must agree on, since they meet only in Envoy. */

/** The endpoint-picker protocol of the Gateway API inference extension: header, and key in the namespace `envoy.lb`. */
export const DESTINATION_ENDPOINT = "x-gateway-destination-endpoint";
export const LB_NAMESPACE = "envoy.lb";
export const DESTINATION_ENDPOINT_SERVED = "x-gateway-destination-endpoint-served";
export const SUBSET_NAMESPACE = "envoy.lb.subset_hint";
export const SUBSET_KEY = "x-gateway-destination-endpoint-subset";

/** Dynamic metadata by which an access-log entry names its decision. */
export const DECISION_NAMESPACE = "kinference";
export const DECISION_ID = "decision";
/** Dynamic metadata with the ordered clusters of a request, read by Envoy's priority_group cluster specifier. */
export const ROUTE_NAMESPACE = "kinference.route";
/** Dynamic metadata into which Envoy's own filters put the token usage of a response. */
export const USAGE_NAMESPACE = "kinference.usage";
/** Access-log tag with the microseconds from the request's first byte to the response body's first byte. */
export const FIRST_BODY_BYTE_TAG = "first_body_byte_us";

/** Request header that names the cluster, for Envoys without priority groups. */
export const CLUSTER_HEADER = "x-kinference-cluster";
/** All headers with this prefix are ours: a client's are removed. */
export const HEADER_PREFIX = "x-kinference-";
/** gRPC metadata by which our gateway tells the handler how the end of a request is observed. */
export const OBSERVE_METADATA = "x-kinference-observe";
/** gRPC metadata, `true` if the gateway's routes follow the ordered clusters of a request. */
export const ACROSS_CLUSTERS_METADATA = "x-kinference-across-clusters";
export type ObserveMode = "access-log" | "in-stream";

export function poolCluster(poolKey: string): string {
  return `pool/${poolKey}`;
}

export function providerCluster(providerKey: string): string {
  return `provider/${providerKey}`;
}
