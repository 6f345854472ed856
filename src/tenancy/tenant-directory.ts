import { createHash } from "node:crypto";

export const DEFAULT_TENANT = "default";

/** Names the tenant of a request by its API key. Keys are known by their SHA-256 digests only. */
export class TenantDirectory {
  readonly #byDigest: ReadonlyMap<string, string>;

  /** @param tenants each tenant's key digests, in lower-case hex */
  constructor(tenants: readonly { name: string; apiKeyDigests: readonly string[] }[]) {
    this.#byDigest = new Map(
      tenants.flatMap(({ name, apiKeyDigests }) => apiKeyDigests.map((digest) => [digest.toLowerCase(), name])),
    );
  }

  /** `default` for requests without a key, or with one that no tenant has. */
  tenantOf(header: (name: string) => string | undefined): string {
    if (this.#byDigest.size === 0) return DEFAULT_TENANT;
    const key = /^bearer (.+)$/i.exec(header("authorization") ?? "")?.[1] ?? header("x-api-key");
    if (key === undefined) return DEFAULT_TENANT;
    return this.#byDigest.get(createHash("sha256").update(key.trim()).digest("hex")) ?? DEFAULT_TENANT;
  }
}
