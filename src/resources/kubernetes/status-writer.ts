import type { CustomObjectsApi, KubeConfig } from "@kubernetes/client-node";
import { type Identity, identityKey } from "../resource-status.ts";
import { type Client, reasonOf } from "./collection.ts";
import type { StoredStatus } from "./conditions.ts";
import type { WatchedKind } from "./watched-kinds.ts";

/** Statuses to be written, by the key of their object. */
type Waiting = Map<string, { kind: WatchedKind; object: Identity; status: StoredStatus }>;

const RETRY_MS = 5000;

/** Writes statuses, one after another; of several for one object, the last. What fails is tried again. */
export class StatusWriter {
  readonly #client: Client;
  readonly #api: CustomObjectsApi;
  readonly #failed: (object: Identity, reason: string) => void;
  readonly #waiting: Waiting = new Map();
  #writing: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(client: Client, config: KubeConfig, failed: (object: Identity, reason: string) => void) {
    this.#client = client;
    this.#api = config.makeApiClient(client.CustomObjectsApi);
    this.#failed = failed;
  }

  write(kind: WatchedKind, object: Identity, status: StoredStatus): void {
    this.#waiting.set(identityKey(object), { kind, object, status });
    this.#writing ??= this.#drain();
  }

  /** Stops once what waits is written, or cannot be. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#retry);
    await this.#writing;
  }

  async #drain(): Promise<void> {
    const again: Waiting = new Map();
    for (const [key, one] of this.#waiting) {
      this.#waiting.delete(key);
      const reason = await this.#patch(one.kind, one.object, one.status);
      if (reason === undefined) continue;
      this.#failed(one.object, reason);
      again.set(key, one);
    }
    this.#writing = undefined;
    if (again.size > 0 && !this.#stopped) this.#later(again);
  }

  #later(again: Waiting): void {
    this.#retry = setTimeout(() => {
      for (const [key, one] of again) if (!this.#waiting.has(key)) this.#waiting.set(key, one);
      this.#writing ??= this.#drain();
    }, RETRY_MS).unref();
  }

  /** Undefined, or why it failed. An object that is gone needs no status. */
  async #patch(kind: WatchedKind, { namespace, name }: Identity, status: StoredStatus): Promise<string | undefined> {
    const [group = "", version = ""] = kind.apiVersion.split("/");
    const asMerge = this.#client.setHeaderOptions("Content-Type", this.#client.PatchStrategy.MergePatch);
    const { plural } = kind;
    try {
      await this.#api.patchNamespacedCustomObjectStatus(
        { group, version, plural, namespace, name, body: { status } },
        asMerge,
      );
      return undefined;
    } catch (error) {
      return (error as { code?: unknown }).code === 404 ? undefined : reasonOf(error);
    }
  }
}
