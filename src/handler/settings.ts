import type { PostJson } from "../classify/remote-tags.ts";
import type { SendCopy } from "./shadow.ts";

export interface HandlerSettings {
  /** Above it: 413. */
  maxBodyBytes: number;
  /** Paths beside the APIs' that are let through to any healthy worker, unread by policies. */
  allowedPaths: readonly string[];
  /** Adds response headers that say who served a request and why. */
  debugHeaders: boolean;
  /** Further endpoints named to somebody else's Envoy; those with ORIGINAL_DST clusters understand only one. */
  foreignFallbacks: number;
  /** Lower-case names of headers by which a gateway in front names the tenant. */
  trustedHeaders: readonly string[];
  /** Lower-case names of headers whose values explanations may carry. */
  loggedHeaders: readonly string[];
}

export const DEFAULT_HANDLER: HandlerSettings = {
  maxBodyBytes: 32 << 20,
  allowedPaths: [],
  debugHeaders: false,
  foreignFallbacks: 0,
  trustedHeaders: [],
  loggedHeaders: [],
};

/** The world around the handler, so that tests can have another. */
export interface Surroundings {
  /** Monotonic milliseconds. */
  now(): number;
  /** Milliseconds since 1970. */
  epochMs(): number;
  /** 0 to 1. */
  random(): number;
  postJson: PostJson;
  sendCopy: SendCopy;
  /** Whether the next decision is to be explained. */
  explains(): boolean;
}

/** Surroundings without a network. */
export const ALONE: Surroundings = {
  now: () => performance.now(),
  epochMs: () => Date.now(),
  random: Math.random,
  postJson: () => Promise.reject(new Error("no network")),
  sendCopy: () => Promise.reject(new Error("no network")),
  explains: () => false,
};
