import { isIP } from "node:net";
import type { Endpoint, Snapshot } from "./snapshot.ts";

/** Looks a name up; rejects when there is none. */
export type Lookup = (host: string) => Promise<string>;

/**
 * Replaces the DNS names of endpoints by addresses, which is what Envoy picks by. A name that nobody knows is left out
 * and reported: the other workers can serve.
 */
export async function resolveEndpoints(
  snapshot: Snapshot,
  lookup: Lookup,
  unknown: (endpoint: Endpoint, error: Error) => void,
): Promise<Snapshot> {
  const resolve = async (endpoint: Endpoint): Promise<Endpoint[]> => {
    if (isIP(endpoint.host) !== 0) return [endpoint];
    try {
      return [{ ...endpoint, host: await lookup(endpoint.host) }];
    } catch (error) {
      unknown(endpoint, error as Error);
      return [];
    }
  };
  const pools = await Promise.all(
    snapshot.pools.map(async (pool) => ({
      ...pool,
      endpoints: (await Promise.all(pool.endpoints.map(resolve))).flat(),
    })),
  );
  return { ...snapshot, pools };
}

/** `ip:port`, with brackets around IPv6, as Envoy writes it. */
export function addressOf(endpoint: Endpoint): string {
  return endpoint.host.includes(":") ? `[${endpoint.host}]:${endpoint.port}` : `${endpoint.host}:${endpoint.port}`;
}
