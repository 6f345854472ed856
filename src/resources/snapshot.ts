import type { InferenceModel } from "../api/inference-model.ts";
import type { InferencePolicy } from "../api/inference-policy.ts";
import type { InferenceProvider } from "../api/inference-provider.ts";
import type { InferenceTenant } from "../api/inference-tenant.ts";
import type { Resource } from "../api/resource.ts";
import { keyOf, namespaceOf } from "../api/resource.ts";
import {
  type EndpointSlice,
  type Gateway,
  type HTTPRoute,
  type InferencePool,
  POOL_LABEL,
  type Secret,
} from "../api/standard-kinds.ts";

/** Everything that was declared, at one moment. Immutable: a change makes a new one. */
export interface Snapshot {
  readonly pools: readonly PoolEndpoints[];
  readonly policies: readonly InferencePolicy[];
  readonly providers: readonly InferenceProvider[];
  readonly models: readonly InferenceModel[];
  readonly tenants: readonly InferenceTenant[];
  readonly gateways: readonly Gateway[];
  readonly routes: readonly HTTPRoute[];
  /** By `namespace/name`; values decoded. */
  readonly secrets: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

export interface PoolEndpoints {
  /** `namespace/name` */
  readonly key: string;
  readonly failOpen: boolean;
  readonly endpoints: readonly Endpoint[];
}

export interface Endpoint {
  readonly name: string;
  /** IP address or DNS name. */
  readonly host: string;
  readonly port: number;
  /** Of its Pod or EndpointSlice; its zone is `topology.kubernetes.io/zone`. */
  readonly labels: Readonly<Record<string, string>>;
}

const ZONE_LABEL = "topology.kubernetes.io/zone";

/** Builds a snapshot from validated objects; the later of two objects with one name counts. */
export function buildSnapshot(objects: readonly Resource[]): Snapshot {
  const byKey = new Map(objects.map((object) => [`${object.kind} ${keyOf(object)}`, object]));
  const unique = [...byKey.values()];
  // The schemas have checked each object against the type that its kind names.
  const ofKind = <T extends Resource>(kind: T["kind"]): T[] =>
    unique.filter((object): object is T => object.kind === kind);
  const slices = ofKind<EndpointSlice>("EndpointSlice");
  return {
    pools: ofKind<InferencePool>("InferencePool").map((pool) => resolvePool(pool, slices)),
    policies: ofKind<InferencePolicy>("InferencePolicy"),
    providers: ofKind<InferenceProvider>("InferenceProvider"),
    models: ofKind<InferenceModel>("InferenceModel"),
    tenants: ofKind<InferenceTenant>("InferenceTenant"),
    gateways: ofKind<Gateway>("Gateway"),
    routes: ofKind<HTTPRoute>("HTTPRoute"),
    secrets: new Map(ofKind<Secret>("Secret").map((secret) => [keyOf(secret), secretValues(secret)])),
  };
}

function resolvePool(pool: InferencePool, slices: EndpointSlice[]): PoolEndpoints {
  const own = slices.filter(
    (slice) => namespaceOf(slice) === namespaceOf(pool) && slice.metadata.labels?.[POOL_LABEL] === pool.metadata.name,
  );
  return {
    key: keyOf(pool),
    failOpen: pool.spec.endpointPickerRef?.failureMode === "FailOpen",
    endpoints: own.flatMap((slice) => sliceEndpoints(slice, pool)),
  };
}

function sliceEndpoints(slice: EndpointSlice, pool: InferencePool): Endpoint[] {
  const ports = slice.ports?.map((p) => p.port) ?? pool.spec.targetPorts.map((p) => p.number);
  return slice.endpoints
    .filter((endpoint) => endpoint.conditions?.ready !== false)
    .flatMap((endpoint) =>
      ports.flatMap((port) =>
        endpoint.addresses.slice(0, 1).map((host) => ({
          name: endpoint.targetRef?.name ?? `${host}:${port}`,
          host,
          port,
          labels: { ...slice.metadata.labels, ...(endpoint.zone === undefined ? {} : { [ZONE_LABEL]: endpoint.zone }) },
        })),
      ),
    );
}

function secretValues(secret: Secret): Map<string, string> {
  const decoded = Object.entries(secret.data ?? {}).map(([k, v]): [string, string] => [
    k,
    Buffer.from(v, "base64").toString(),
  ]);
  return new Map([...decoded, ...Object.entries(secret.stringData ?? {})]);
}
