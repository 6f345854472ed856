/** The part of every Kubernetes object that we rely on. */
export interface Resource<Kind extends string = string, Spec = unknown> {
  apiVersion: string;
  kind: Kind;
  metadata: ObjectMeta;
  spec: Spec;
}

export interface ObjectMeta {
  name: string;
  namespace?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  /** RFC 3339; absent for objects read from files. */
  creationTimestamp?: string;
  generation?: number;
  resourceVersion?: string;
}

export const DEFAULT_NAMESPACE = "default";

/** The namespace of an object; objects in files may leave it out. */
export function namespaceOf(resource: { metadata: ObjectMeta }): string {
  return resource.metadata.namespace ?? DEFAULT_NAMESPACE;
}

/** `namespace/name`, the key by which resources refer to each other here. */
export function keyOf(resource: { metadata: ObjectMeta }): string {
  return `${namespaceOf(resource)}/${resource.metadata.name}`;
}
