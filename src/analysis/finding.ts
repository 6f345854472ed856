import type { Resource } from "../api/resource.ts";

export type Severity = "error" | "warning" | "info";

/** Something that whoever wrote a policy should know. */
export interface Finding {
  readonly severity: Severity;
  /** What kind of finding: stable, for those who filter. */
  readonly code: FindingCode;
  readonly object: Resource;
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export const FINDING_CODES = {
  "guard-defeated": "a rule lets out what another keeps inside",
  "guard-fails-open": "a guard that lets requests pass when their tag cannot be told",
  "leaves-cluster": "a way for requests to leave the cluster",
  "rule-hidden": "a rule that is never reached",
  "never-holds": "a match that no request can have",
  "unknown-model": "a model that nobody serves",
  "unknown-provider": "a provider or worker that nobody declared",
  "unknown-tenant": "a tenant that nobody declared",
  "unknown-pool": "a pool that nobody declared",
  "unknown-target": "a Gateway or HTTPRoute that nobody declared",
  "unused-tag": "a tag that no rule asks for",
} as const;
export type FindingCode = keyof typeof FINDING_CODES;
