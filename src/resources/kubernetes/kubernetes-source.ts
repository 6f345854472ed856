import type { KubeConfig } from "@kubernetes/client-node";
import type { Logger } from "pino";
import { namespaceOf, type Resource } from "../../api/resource.ts";
import type { InferencePool } from "../../api/standard-kinds.ts";
import { identityKey } from "../resource-status.ts";
import type { DeclaredSource, SnapshotUser } from "../snapshot-user.ts";
import {
  type AcceptChecks,
  type Accepted,
  acceptObjects,
  type DeclaredObject,
  type ObjectStatus,
} from "./accept-objects.ts";
import { type Client, Collection, type CollectionScope } from "./collection.ts";
import { type StoredStatus, sameStatus, statusBefore, statusToStore } from "./conditions.ts";
import { StatusWriter } from "./status-writer.ts";
import { declaredPart, podEndpoints, routePart, type StoredObject } from "./stored-object.ts";
import { GATEWAYS, OWN_KINDS, PODS, POOLS, ROUTES, SECRETS, type WatchedKind } from "./watched-kinds.ts";

export interface KubernetesOptions {
  /** Only this namespace; undefined: all. */
  namespace: string | undefined;
  checks: AcceptChecks;
  log: Logger;
  /** Milliseconds since 1970. */
  epochMs(): number;
}

/** Several changes at once are one. */
const SETTLE_MS = 50;

/** Loads the client and its configuration: `KUBECONFIG`, `~/.kube/config`, or that of the Pod. */
export async function connectKubernetes(): Promise<{ client: Client; config: KubeConfig }> {
  const client = await import("@kubernetes/client-node");
  const config = new client.KubeConfig();
  config.loadFromDefault();
  return { client, config };
}

/** What is declared in Kubernetes: watched, judged, and told of in each object's status. */
export class KubernetesSource implements DeclaredSource {
  readonly #client: Client;
  readonly #config: KubeConfig;
  readonly #options: KubernetesOptions;
  readonly #writer: StatusWriter;
  readonly #own: readonly { kind: WatchedKind; collection: Collection }[];
  readonly #pools: Collection;
  readonly #routes: Collection;
  readonly #gateways: Collection;
  readonly #secrets: Collection;
  /** The Pods of each pool, by its key and selector. */
  #pods: ReadonlyMap<string, Collection> = new Map();
  /** By uid: an object that only got another status is the one that it was. */
  #declared: ReadonlyMap<string, { version: string; declared: DeclaredObject }> = new Map();
  /** What was last written, by uid. */
  readonly #written = new Map<string, StoredStatus>();
  /** All that was declared at the start has been seen. */
  #complete = false;
  #lastGood: Accepted["lastGood"] = new Map();
  #settling: NodeJS.Timeout | undefined;
  #user: SnapshotUser | undefined;
  #applied: Promise<void> = Promise.resolve();
  #started: (() => void) | undefined;

  constructor(client: Client, config: KubeConfig, options: KubernetesOptions) {
    this.#client = client;
    this.#config = config;
    this.#options = options;
    this.#writer = new StatusWriter(client, config, ({ kind, namespace, name }, reason) =>
      options.log.warn({ kind, object: `${namespace}/${name}`, reason }, "status cannot be written"),
    );
    const { namespace } = options;
    this.#own = OWN_KINDS.map((kind) => ({ kind, collection: this.#collection(kind, { namespace }) }));
    this.#pools = this.#collection(POOLS, { namespace });
    this.#routes = this.#collection(ROUTES, { namespace });
    this.#gateways = this.#collection(GATEWAYS, { namespace });
    this.#secrets = this.#collection(SECRETS, { namespace });
  }

  /** Resolves once all that is declared has been seen and is in use. */
  start(user: SnapshotUser): Promise<void> {
    this.#user = user;
    for (const collection of this.#collections()) collection.start();
    return new Promise((resolve) => {
      this.#started = resolve;
    });
  }

  async stop(): Promise<void> {
    clearTimeout(this.#settling);
    for (const collection of [...this.#collections(), ...this.#pods.values()]) collection.stop();
    await this.#writer.stop();
  }

  #collections(): Collection[] {
    return [...this.#own.map(({ collection }) => collection), this.#pools, this.#routes, this.#gateways, this.#secrets];
  }

  #collection(kind: WatchedKind, scope: CollectionScope): Collection {
    const { log } = this.#options;
    return new Collection(this.#client, this.#config, kind, scope, {
      changed: () => this.#settle(),
      recovered: () => log.info({ kind: kind.kind }, "watched again"),
      failed: (reason, retryMs) => {
        log.warn({ kind: kind.kind, reason, retryMs }, "cannot be watched; what was seen last stays in use");
        this.#settle();
      },
    });
  }

  #settle(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = undefined;
      this.#changed();
    }, SETTLE_MS).unref();
  }

  #changed(): void {
    this.#watchPods();
    const all = [...this.#collections(), ...this.#pods.values()];
    // At first nothing may be missing. Later a pool whose Pods cannot be listed must not hold up what else changes.
    if (all.some((collection) => (this.#complete ? collection.expected : !collection.listed))) return;
    this.#complete = true;
    this.#use(this.#accept());
  }

  /** Watches the Pods that pools select, and no others. */
  #watchPods(): void {
    const before = this.#pods;
    const selected = this.#poolObjects().map((pool) => ({
      key: podsKey(pool),
      namespace: namespaceOf(pool),
      labelSelector: selectorOf(pool),
    }));
    this.#pods = new Map(
      selected.map(({ key, ...scope }) => [key, before.get(key) ?? this.#startPods(scope)] as const),
    );
    for (const [key, collection] of before) if (!this.#pods.has(key)) collection.stop();
  }

  #startPods(scope: CollectionScope): Collection {
    const collection = this.#collection(PODS, scope);
    collection.start();
    return collection;
  }

  #poolObjects(): InferencePool[] {
    return this.#pools.objects().map((stored) => declaredPart(POOLS.apiVersion, POOLS.kind, stored) as InferencePool);
  }

  #accept(): Accepted {
    const pools = this.#poolObjects();
    const endpoints = pools.flatMap((pool) =>
      (this.#pods.get(podsKey(pool))?.objects() ?? []).flatMap((pod) => podEndpoints(pod, pool) ?? []),
    );
    const parts = (kind: WatchedKind, collection: Collection) =>
      collection.objects().map((stored) => declaredPart(kind.apiVersion, kind.kind, stored));
    const standard: Resource[] = [
      ...pools,
      ...endpoints,
      ...this.#routes.objects().map(routePart),
      ...parts(GATEWAYS, this.#gateways),
      ...parts(SECRETS, this.#secrets),
    ];
    const accepted = acceptObjects(this.#declaredObjects(), standard, this.#lastGood, this.#options.checks);
    this.#lastGood = accepted.lastGood;
    return accepted;
  }

  #declaredObjects(): DeclaredObject[] {
    const before = this.#declared;
    const entries = this.#own.flatMap(({ kind, collection }) =>
      collection.objects().map((stored) => {
        const { uid = "", generation, labels } = stored.metadata ?? {};
        const version = JSON.stringify([generation, labels]);
        const known = before.get(uid);
        if (known?.version === version) return [uid, known] as const;
        const object = declaredPart(kind.apiVersion, kind.kind, stored);
        return [uid, { version, declared: { object, before: statusBefore(object, storedStatus(stored)) } }] as const;
      }),
    );
    this.#declared = new Map(entries);
    return entries.map(([, { declared }]) => declared);
  }

  /** One after another: what was declared last must also be applied last, and a status tells of what was applied. */
  #use({ snapshot, statuses }: Accepted): void {
    this.#applied = this.#applied.then(async () => {
      try {
        await this.#user?.apply(snapshot);
        this.#user?.setStatuses(statuses);
        this.#writeStatuses(statuses);
        this.#started?.();
      } catch (error) {
        this.#options.log.error({ err: error }, "bug: what is declared cannot be used");
      }
    });
  }

  #writeStatuses(statuses: readonly ObjectStatus[]): void {
    const byKey = new Map(statuses.map((status) => [identityKey(status), status]));
    const time = `${new Date(this.#options.epochMs()).toISOString().slice(0, 19)}Z`;
    const present = new Set<string>();
    for (const { kind, collection } of this.#own) {
      for (const stored of collection.objects()) {
        const { uid = "", generation, namespace = "", name = "" } = stored.metadata ?? {};
        const status = byKey.get(identityKey({ kind: kind.kind, namespace, name }));
        if (status === undefined || status.generation !== generation) continue;
        present.add(uid);
        const before = this.#written.get(uid) ?? storedStatus(stored);
        const next = statusToStore(status, before, time);
        const changed = !sameStatus(before, next);
        if (changed || !this.#written.has(uid)) this.#tell(status);
        if (changed) this.#writer.write(kind, status, next);
        this.#written.set(uid, next);
      }
    }
    for (const uid of this.#written.keys()) if (!present.has(uid)) this.#written.delete(uid);
  }

  #tell({ kind, namespace, name, generation, accepted, resolved, problems, lastGood, refuses }: ObjectStatus): void {
    const fields = { kind, object: `${namespace}/${name}`, generation };
    if (accepted && resolved) this.#options.log.info(fields, "in use");
    for (const problem of problems) this.#options.log[accepted ? "warn" : "error"](fields, problem);
    if (lastGood !== undefined) this.#options.log.error(fields, "the last good version goes on");
    if (refuses === true) this.#options.log.error(fields, "no version is known that could go on: requests are refused");
  }
}

function storedStatus({ status }: StoredObject): StoredStatus {
  return (status ?? {}) as StoredStatus;
}

function selectorOf({ spec }: InferencePool): string {
  return Object.entries(spec.selector.matchLabels)
    .map(([label, value]) => `${label}=${value}`)
    .join(",");
}

function podsKey(pool: InferencePool): string {
  return `${namespaceOf(pool)} ${selectorOf(pool)}`;
}
