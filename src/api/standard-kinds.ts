import type { Resource } from "./resource.ts";

/** `inference.networking.k8s.io/v1`: the local workers. */
export type InferencePool = Resource<
  "InferencePool",
  {
    selector: { matchLabels: Record<string, string> };
    targetPorts: { number: number }[];
    endpointPickerRef?: { name: string; failureMode?: "FailClose" | "FailOpen" };
  }
>;

/** `discovery.k8s.io/v1`, without `spec` as in Kubernetes. */
export interface EndpointSlice extends Resource<"EndpointSlice"> {
  addressType: "IPv4" | "IPv6" | "FQDN";
  endpoints: { addresses: string[]; conditions?: { ready?: boolean }; targetRef?: { name?: string }; zone?: string }[];
  ports?: { name?: string; port: number }[];
}

/** Says which pool the endpoints of a slice belong to where no Pod labels do. */
export const POOL_LABEL = "kinference.buoyant.io/inference-pool";

/** `v1`, data base64 or plain `stringData`. */
export interface Secret extends Resource<"Secret"> {
  data?: Record<string, string>;
  stringData?: Record<string, string>;
}

/** `gateway.networking.k8s.io/v1`. */
export type Gateway = Resource<
  "Gateway",
  { gatewayClassName: string; listeners: { name: string; port: number; protocol: string; hostname?: string }[] }
>;

export type HTTPRoute = Resource<
  "HTTPRoute",
  {
    parentRefs?: { name: string; namespace?: string; sectionName?: string }[];
    hostnames?: string[];
    rules: HTTPRouteRule[];
  }
>;

export interface HTTPRouteRule {
  name?: string;
  matches?: {
    path?: { type?: "Exact" | "PathPrefix"; value?: string };
    headers?: { type?: "Exact"; name: string; value: string }[];
  }[];
  backendRefs: { group?: string; kind?: string; name: string; namespace?: string; weight?: number }[];
}
