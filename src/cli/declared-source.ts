import type { Logger } from "pino";
import { watchFiles } from "../resources/files.ts";
import { refusedStatuses, statusesOf } from "../resources/resource-status.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import type { DeclaredSource, SnapshotUser } from "../resources/snapshot-user.ts";
import { declaredOrThrow, loadDeclared, problemLines, type ResourceFlags } from "./declared-resources.ts";

const RESOLVE_EVERY_MS = 30_000;

/**
 * Keeps a process on what its files declare. A change that has a mistake anywhere is refused as a whole: the last good
 * configuration goes on, and statuses, metrics and log say what is wrong. Names of workers are looked up again now and
 * then.
 */
export function followDeclared(flags: ResourceFlags, first: Snapshot, user: SnapshotUser, log: Logger) {
  const files = flags.file ?? [];
  let current = first;
  // One after another: what was declared last must also be applied last.
  let applied = Promise.resolve();
  const apply = () => {
    applied = applied.then(async () => void (await user.apply(current)));
    return applied;
  };
  const reload = () => {
    const next = loadDeclared(flags);
    if (!next.ok) {
      for (const line of problemLines(next)) log.error(line);
      log.error("the changed files are refused; the last good configuration goes on");
      user.setStatuses(refusedStatuses(current, next.problems));
      return;
    }
    current = next.snapshot;
    user.setStatuses(statusesOf(current));
    void apply().then(() => log.info("configuration reloaded"));
  };
  const watcher = files.length === 0 ? undefined : watchFiles(files, reload);
  const resolver = setInterval(() => void apply(), RESOLVE_EVERY_MS).unref();
  return {
    close() {
      clearInterval(resolver);
      watcher?.close();
    },
  };
}

/** What files and flags declare. Throws what is wrong with them, for whoever started the process. */
export function filesSource(flags: ResourceFlags, log: Logger): DeclaredSource {
  const { snapshot } = declaredOrThrow(flags);
  let following: { close(): void } | undefined;
  return {
    async start(user) {
      await user.apply(snapshot);
      user.setStatuses(statusesOf(snapshot));
      following = followDeclared(flags, snapshot, user, log);
    },
    async stop() {
      following?.close();
    },
  };
}
