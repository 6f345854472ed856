import type { KubeConfig, KubernetesListObject, KubernetesObject, ListWatch } from "@kubernetes/client-node";
import type { StoredObject } from "./stored-object.ts";
import { collectionPath, type WatchedKind } from "./watched-kinds.ts";

/** The client is large: only those who talk to an API server load it. */
export type Client = typeof import("@kubernetes/client-node");

export interface CollectionScope {
  /** Undefined: all namespaces. */
  namespace: string | undefined;
  labelSelector?: string;
}

/** What a collection tells those who look at it. */
export interface CollectionEvents {
  changed(): void;
  /** After a failure it is seen again. */
  recovered(): void;
  /** The API server cannot be reached or refuses: what was seen last stays, and it is tried again. */
  failed(reason: string, retryMs: number): void;
}

type Stored = StoredObject & KubernetesObject;

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;

/** The objects of one kind as the API server has them, kept current by list and watch. */
export class Collection {
  readonly #kind: WatchedKind;
  readonly #events: CollectionEvents;
  readonly #watch: ListWatch<Stored>;
  #listed = false;
  #failing = false;
  #stopped = false;
  #retryMs = FIRST_RETRY_MS;
  #retry: NodeJS.Timeout | undefined;

  constructor(client: Client, config: KubeConfig, kind: WatchedKind, scope: CollectionScope, events: CollectionEvents) {
    this.#kind = kind;
    this.#events = events;
    const path = collectionPath(kind, scope.namespace);
    const list = listOf(client, config, kind, scope);
    const listed = async () => {
      const found = await list();
      // Once the client has taken them in, which it does without waiting for anything.
      setImmediate(() => this.#connected());
      return found;
    };
    const { labelSelector } = scope;
    this.#watch = new client.ListWatch(
      path,
      new client.Watch(config),
      listed,
      false,
      labelSelector,
      kind.fieldSelector,
    );
    this.#watch.on("change", () => this.#seen());
    this.#watch.on("error", (error: unknown) => this.#again(error));
  }

  start(): void {
    this.#watch.start().catch((error: unknown) => this.#again(error));
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#retry);
    void this.#watch.stop();
  }

  /** Whether all objects have been seen once. */
  get listed(): boolean {
    return this.#listed;
  }

  /** Whether its objects are about to be seen: not yet listed, and nothing has gone wrong. */
  get expected(): boolean {
    return !this.#listed && !this.#failing;
  }

  objects(): readonly StoredObject[] {
    return this.#watch.list();
  }

  #connected(): void {
    if (this.#stopped) return;
    this.#listed = true;
    this.#seen();
  }

  #seen(): void {
    this.#retryMs = FIRST_RETRY_MS;
    if (this.#failing) this.#events.recovered();
    this.#failing = false;
    this.#events.changed();
  }

  #again(error: unknown): void {
    if (this.#stopped) return;
    if (this.#kind.optional && statusOf(error) === 404) {
      if (!this.#listed) this.#connected();
      this.#retryMs = LONGEST_RETRY_MS;
    } else {
      this.#failing = true;
      this.#events.failed(reasonOf(error), this.#retryMs);
    }
    this.#retry = setTimeout(() => this.start(), this.#retryMs).unref();
    this.#retryMs = Math.min(LONGEST_RETRY_MS, this.#retryMs * 2);
  }
}

function listOf(
  client: Client,
  config: KubeConfig,
  { kind, apiVersion, plural, fieldSelector }: WatchedKind,
  { namespace, labelSelector }: CollectionScope,
): () => Promise<KubernetesListObject<Stored>> {
  const selectors = {
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
  };
  const core = config.makeApiClient(client.CoreV1Api);
  const custom = config.makeApiClient(client.CustomObjectsApi);
  switch (kind) {
    case "Secret":
      return () =>
        namespace === undefined
          ? core.listSecretForAllNamespaces(selectors)
          : core.listNamespacedSecret({ namespace, ...selectors });
    case "Pod":
      return () =>
        namespace === undefined
          ? core.listPodForAllNamespaces(selectors)
          : core.listNamespacedPod({ namespace, ...selectors });
    default: {
      const [group = "", version = ""] = apiVersion.split("/");
      return () =>
        namespace === undefined
          ? custom.listClusterCustomObject({ group, version, plural, ...selectors })
          : custom.listNamespacedCustomObject({ group, version, plural, namespace, ...selectors });
    }
  }
}

function statusOf(error: unknown): number | undefined {
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  return [code, statusCode].find((one) => typeof one === "number");
}

/** The API server's own message where it gave one; never its headers, which the client's error text would carry. */
export function reasonOf(error: unknown): string {
  const { body, cause, message } = error as { body?: unknown; cause?: { message?: string }; message?: string };
  const status = statusOf(error);
  if (typeof body === "string") {
    const told = messageIn(body);
    if (told !== undefined) return told;
  }
  if (status !== undefined) return `the API server answered ${status}`;
  return cause?.message ?? message ?? String(error);
}

function messageIn(body: string): string | undefined {
  try {
    const { message } = JSON.parse(body) as { message?: unknown };
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}
