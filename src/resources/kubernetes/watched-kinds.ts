import { KINFERENCE_API } from "../../api/inference-policy.ts";
import { KINFERENCE_KINDS } from "../../api/schemas.ts";

/** A collection of the API server that the handler keeps an eye on. */
export interface WatchedKind {
  kind: string;
  apiVersion: string;
  plural: string;
  /** An API server without this kind is fine: then there are no such objects. */
  optional: boolean;
  fieldSelector?: string;
}

/** Kinds whose objects are ours to judge: each gets a status. */
export const OWN_KINDS: readonly WatchedKind[] = KINFERENCE_KINDS.map(({ kind, plural }) => ({
  kind,
  plural,
  apiVersion: KINFERENCE_API,
  optional: false,
}));

export const POOLS: WatchedKind = {
  kind: "InferencePool",
  apiVersion: "inference.networking.k8s.io/v1",
  plural: "inferencepools",
  optional: false,
};

export const ROUTES: WatchedKind = {
  kind: "HTTPRoute",
  apiVersion: "gateway.networking.k8s.io/v1",
  plural: "httproutes",
  optional: true,
};

export const GATEWAYS: WatchedKind = {
  kind: "Gateway",
  apiVersion: "gateway.networking.k8s.io/v1",
  plural: "gateways",
  optional: true,
};

/** Only those that people make: not the service-account tokens and release records beside them. */
export const SECRETS: WatchedKind = {
  kind: "Secret",
  apiVersion: "v1",
  plural: "secrets",
  optional: false,
  fieldSelector: "type=Opaque",
};

export const PODS: WatchedKind = { kind: "Pod", apiVersion: "v1", plural: "pods", optional: false };

/** `/apis/GROUP/VERSION/namespaces/NS/PLURAL`, or of all namespaces. */
export function collectionPath({ apiVersion, plural }: WatchedKind, namespace: string | undefined): string {
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return namespace === undefined ? `${root}/${plural}` : `${root}/namespaces/${namespace}/${plural}`;
}
