import type { ResourceStatus } from "./resource-status.ts";
import type { Snapshot } from "./snapshot.ts";

/** Who uses what is declared. */
export interface SnapshotUser {
  /** Resolves once the snapshot is in use. */
  apply(snapshot: Snapshot): Promise<unknown>;
  setStatuses(statuses: readonly ResourceStatus[]): void;
}

/** What is declared, wherever that is. */
export interface DeclaredSource {
  /** Resolves once the user has what is declared now; it gets each later change too. */
  start(user: SnapshotUser): Promise<void>;
  stop(): Promise<void>;
}
