import { createHash } from "node:crypto";

export interface Tenant {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly limits: readonly TenantLimit[];
}

export interface TenantLimit {
  readonly tokens: "Input" | "Output" | "Total" | "Cost";
  readonly quantity: number | string;
  readonly window: number | string;
}

/** How a tenant is known. */
export interface TenantIdentity {
  readonly tenant: Tenant;
  /** SHA-256 digests of its API keys, in hex. */
  readonly apiKeyDigests: readonly string[];
  readonly jwtClaim?: { name: string; value: string };
  readonly header?: { name: string; value: string };
}

/** What a request says of who sent it. */
export interface Credentials {
  header(name: string): string | undefined;
  /** Claims of a token that Envoy has verified. */
  claim(name: string): string | undefined;
}

export const DEFAULT_TENANT: Tenant = { name: "default", labels: {}, limits: [] };

/** Names the tenant of a request: by its API key, then by a verified claim, then by a header that is trusted. */
export class TenantDirectory {
  readonly #byDigest: ReadonlyMap<string, Tenant>;
  readonly #byClaim: readonly { tenant: Tenant; name: string; value: string }[];
  readonly #byHeader: readonly { tenant: Tenant; name: string; value: string }[];

  /** @param trustedHeaders lower-case names of headers that only a gateway in front can have set */
  constructor(identities: readonly TenantIdentity[], trustedHeaders: readonly string[] = []) {
    this.#byDigest = new Map(
      identities.flatMap(({ tenant, apiKeyDigests }) =>
        apiKeyDigests.map((digest): [string, Tenant] => [digest.trim().toLowerCase(), tenant]),
      ),
    );
    this.#byClaim = identities.flatMap(({ tenant, jwtClaim }) => (jwtClaim ? [{ tenant, ...jwtClaim }] : []));
    this.#byHeader = identities
      .flatMap(({ tenant, header }) =>
        header ? [{ tenant, name: header.name.toLowerCase(), value: header.value }] : [],
      )
      .filter(({ name }) => trustedHeaders.includes(name));
  }

  /** The default tenant for requests that no tenant claims. */
  tenantOf(credentials: Credentials): Tenant {
    return this.#ofKey(credentials) ?? this.#ofClaim(credentials) ?? this.#ofHeader(credentials) ?? DEFAULT_TENANT;
  }

  #ofKey({ header }: Credentials): Tenant | undefined {
    if (this.#byDigest.size === 0) return undefined;
    const key = /^bearer (.+)$/i.exec(header("authorization") ?? "")?.[1] ?? header("x-api-key");
    return key === undefined ? undefined : this.#byDigest.get(createHash("sha256").update(key.trim()).digest("hex"));
  }

  #ofClaim({ claim }: Credentials): Tenant | undefined {
    return this.#byClaim.find(({ name, value }) => claim(name) === value)?.tenant;
  }

  #ofHeader({ header }: Credentials): Tenant | undefined {
    return this.#byHeader.find(({ name, value }) => header(name) === value)?.tenant;
  }
}
