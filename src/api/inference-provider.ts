import type { Resource } from "./resource.ts";

/** A backend outside the cluster; `metadata.name` is what policies call it. */
export type InferenceProvider = Resource<"InferenceProvider", InferenceProviderSpec>;

export interface InferenceProviderSpec {
  type: "OpenAICompatible";
  /** Base URL; request paths (`/v1/...`) are appended, an own path replaces `/v1`. */
  endpoint: string;
  /** A Secret with the API key under `apiKey`, sent as `Authorization: Bearer ...`. */
  credentialsRef?: { name: string; key?: string };
  models: ProviderModel[];
}

export interface ProviderModel {
  /** The name that clients and policies use. */
  name: string;
  /** What the provider calls it; default: the same. */
  providerName?: string;
  /** In US dollars per million tokens. */
  price?: { input: number; output: number; cachedInput?: number };
  /** What to expect of it before any answer came, in milliseconds. Default 800. */
  expectedTtftMs?: number;
}

/** Who a tenant is. A request that no tenant claims belongs to `default`. */
export type InferenceTenant = Resource<"InferenceTenant", InferenceTenantSpec>;

export interface InferenceTenantSpec {
  /** A Secret whose values are SHA-256 digests (hex) of the tenant's API keys. */
  apiKeyHashesRef?: { name: string };
}
