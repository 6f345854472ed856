import type { ObjectMeta, Resource } from "../../api/resource.ts";
import type { EndpointSlice, InferencePool } from "../../api/standard-kinds.ts";
import { POOL_LABEL } from "../../api/standard-kinds.ts";

/** An object as the API server gives it, before anybody has looked at it. */
export interface StoredObject {
  metadata?: {
    name?: string;
    namespace?: string;
    uid?: string;
    labels?: Record<string, string>;
    generation?: number;
    creationTimestamp?: Date | string;
    deletionTimestamp?: Date | string;
  };
  spec?: unknown;
  status?: unknown;
  data?: unknown;
}

/** A Pod, as far as an endpoint of it goes. */
interface StoredPod extends StoredObject {
  status?: { podIP?: string; conditions?: { type: string; status: string }[] };
}

/** What somebody declared: without status, and without what only the API server's bookkeeping needs. */
export function declaredPart(apiVersion: string, kind: string, stored: StoredObject): Resource {
  const { spec, data } = stored;
  return { apiVersion, kind, metadata: metadataOf(stored), spec, ...(data === undefined ? {} : { data }) };
}

function metadataOf({ metadata = {} }: StoredObject): ObjectMeta {
  const { name = "", namespace, labels, generation, creationTimestamp } = metadata;
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(labels === undefined ? {} : { labels }),
    ...(generation === undefined ? {} : { generation }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp: rfc3339(creationTimestamp) }),
  };
}

/** Of a list the client makes dates, of a watch strings: both to be compared with each other. */
function rfc3339(time: Date | string): string {
  return new Date(time).toISOString();
}

/**
 * An HTTPRoute as far as the handler needs it: what it hangs on, and its InferencePools. A route to other backends is
 * kept without any, so that its requests still meet the policies of its namespace.
 */
export function routePart(stored: StoredObject): Resource {
  const { parentRefs = [], rules = [] } = (stored.spec ?? {}) as {
    parentRefs?: object[];
    rules?: { backendRefs?: { kind?: string }[] }[];
  };
  const pools = rules.map(({ backendRefs = [] }) => ({
    backendRefs: backendRefs.filter(({ kind }) => kind === "InferencePool"),
  }));
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: metadataOf(stored),
    spec: { parentRefs, rules: pools },
  };
}

/** The endpoints of a pool in one of its Pods, or undefined while the Pod takes no traffic. */
export function podEndpoints(stored: StoredObject, pool: InferencePool): EndpointSlice | undefined {
  const { metadata = {}, status = {} } = stored as StoredPod;
  const ready = status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
  if (!ready || status.podIP === undefined || metadata.deletionTimestamp !== undefined) return undefined;
  const { name = "", namespace = "", labels = {} } = metadata;
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `${pool.metadata.name}/${name}`,
      namespace,
      labels: { ...labels, [POOL_LABEL]: pool.metadata.name },
    },
    spec: undefined,
    addressType: status.podIP.includes(":") ? "IPv6" : "IPv4",
    endpoints: [{ addresses: [status.podIP], targetRef: { name } }],
    ports: pool.spec.targetPorts.map(({ number }) => ({ port: number })),
  };
}
