import type { ObserveMode } from "../api/wire.ts";

/** A request's headers, and what Envoy says beside them. */
export interface RequestHead {
  method: string;
  /** Without query. */
  path: string;
  /** Lower-case names. */
  headers: ReadonlyMap<string, string>;
  /** How our gateway observes the end of this request; undefined behind somebody else's Envoy. */
  observe: ObserveMode | undefined;
  /** Whether an attempt may go to another cluster than the one before. */
  acrossClusters: boolean;
  /** The name of Envoy's route, if it sends it. */
  routeName: string | undefined;
  /** A claim of a token that Envoy has verified. */
  claim(name: string): string | undefined;
  /** The only endpoints that may be picked (`ip` or `ip:port`); undefined: all. */
  subset: readonly string[] | undefined;
}
