import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  PatchStrategy,
  RbacAuthorizationV1Api,
  setHeaderOptions,
  type V1ClusterRole,
} from "@kubernetes/client-node";
import { parse, parseAllDocuments } from "yaml";
import type { Resource } from "../../src/api/resource.ts";
import { KINFERENCE_KINDS } from "../../src/api/schemas.ts";
import type { StoredStatus } from "../../src/resources/kubernetes/conditions.ts";
import { eventually } from "../support/stack.ts";

const RBAC = new URL("../../deploy/kubernetes/rbac.yaml", import.meta.url);
const CRDS = new URL("../../deploy/kinference-crds/templates/", import.meta.url);
/** As plain objects: the client's own type of a definition loses fields on the way. */
const DEFINITIONS = { group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions" };
const PLURALS = new Map([
  ...KINFERENCE_KINDS.map(({ kind, plural }) => [kind, plural] as const),
  ["InferencePool", "inferencepools"] as const,
]);

/** The API server of `$KUBECONFIG`, as a user of it sees it. Each test has a namespace of its own. */
export class ApiServer {
  readonly core: CoreV1Api;
  readonly #custom: CustomObjectsApi;
  readonly #rbac: RbacAuthorizationV1Api;
  readonly #config = new KubeConfig();

  constructor() {
    if (process.env.KUBECONFIG === undefined) throw new Error("set KUBECONFIG to that of a cluster for tests");
    this.#config.loadFromDefault();
    this.core = this.#config.makeApiClient(CoreV1Api);
    this.#custom = this.#config.makeApiClient(CustomObjectsApi);
    this.#rbac = this.#config.makeApiClient(RbacAuthorizationV1Api);
  }

  /** Applies the CRDs of the chart, and waits until they are served. */
  async applyDefinitions(): Promise<void> {
    for (const file of readdirSync(CRDS)) {
      const crd = parse(readFileSync(new URL(file, CRDS), "utf8")) as Resource;
      const { name } = crd.metadata;
      const there = (await this.#custom.getClusterCustomObject({ ...DEFINITIONS, name }).catch(() => undefined)) as
        | Resource
        | undefined;
      if (there === undefined) await this.#custom.createClusterCustomObject({ ...DEFINITIONS, body: crd });
      else {
        const { resourceVersion } = there.metadata;
        const body = { ...crd, metadata: { ...crd.metadata, resourceVersion } };
        await this.#custom.replaceClusterCustomObject({ ...DEFINITIONS, name, body });
      }
      await eventually(async () => {
        const found: unknown = await this.#custom.getClusterCustomObject({ ...DEFINITIONS, name });
        // Of a definition that is new, the API server gives null.
        const { conditions } = (found as { status?: StoredStatus }).status ?? {};
        return conditions?.some(({ type, status }) => type === "Established" && status === "True") === true;
      });
    }
  }

  /** Host and port. */
  get address(): { host: string; port: number } {
    const { hostname, port } = new URL(this.#config.getCurrentCluster()?.server ?? "");
    return { host: hostname, port: Number(port || 443) };
  }

  async createNamespace(): Promise<string> {
    const { metadata } = await this.core.createNamespace({ body: { metadata: { generateName: "kinference-test-" } } });
    const name = metadata?.name ?? "";
    // A bare API server has no controller that makes the account which every Pod needs.
    const account = { namespace: name, body: { metadata: { name: "default" } } };
    await this.core.createNamespacedServiceAccount(account).catch(() => undefined);
    return name;
  }

  /**
   * The file of a kubeconfig for an account that may do in the namespace what the shipped role allows, and no more.
   * Proves that the role suffices.
   * @param server another URL by which the API server is reached
   */
  async handlerAccount(namespace: string, server: string): Promise<string> {
    const documents = parseAllDocuments(readFileSync(RBAC, "utf8")).map((document) => document.toJS() as V1ClusterRole);
    const role = documents.find(({ kind }) => kind === "ClusterRole");
    const name = `kinference-${namespace}`;
    const body = { ...role, metadata: { name } };
    await this.#rbac.createClusterRole({ body });
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name };
    const subjects = [{ kind: "ServiceAccount", name: "default", namespace }];
    await this.#rbac.createNamespacedRoleBinding({ namespace, body: { metadata: { name }, roleRef, subjects } });
    const { status } = await this.core.createNamespacedServiceAccountToken({
      namespace,
      name: "default",
      body: { spec: { audiences: [], expirationSeconds: 3600 } },
    });
    const config = new KubeConfig();
    const cluster = this.#config.getCurrentCluster();
    if (cluster === null) throw new Error("the kubeconfig has no cluster");
    const { hostname } = new URL(cluster.server);
    // A certificate is checked for the server's own name; an address cannot be one.
    const reached = { ...cluster, server, ...(isIP(hostname) === 0 ? { tlsServerName: hostname } : {}) };
    config.loadFromClusterAndUser(reached, { name: "handler", token: status?.token ?? "" });
    const file = join(mkdtempSync(join(tmpdir(), "kinference-account-")), "kubeconfig");
    writeFileSync(file, config.exportConfig());
    return file;
  }

  async deleteNamespace(name: string): Promise<void> {
    await this.core.deleteNamespace({ name });
    await this.#rbac.deleteClusterRole({ name: `kinference-${name}` }).catch(() => undefined);
  }

  /** Creates or replaces an object, with strict validation as kubectl asks for. Throws the API server's message. */
  async apply(namespace: string, object: unknown): Promise<void> {
    const { apiVersion, kind, metadata } = object as Resource;
    const [group = "", version = ""] = apiVersion.split("/");
    const { name } = metadata;
    const at = { group, version, plural: PLURALS.get(kind) ?? "", namespace, fieldValidation: "Strict" };
    const there = (await this.#custom.getNamespacedCustomObject({ ...at, name }).catch(() => undefined)) as
      | Resource
      | undefined;
    const resourceVersion = there?.metadata.resourceVersion;
    const body = { ...(object as object), metadata: { ...metadata, namespace, ...(there ? { resourceVersion } : {}) } };
    try {
      if (there === undefined) await this.#custom.createNamespacedCustomObject({ ...at, body });
      else await this.#custom.replaceNamespacedCustomObject({ ...at, name, body });
    } catch (error) {
      const { body } = error as { body?: string };
      throw new Error((JSON.parse(body ?? "{}") as { message?: string }).message ?? String(error));
    }
  }

  async get(namespace: string, kind: string, name: string): Promise<Resource & { status?: StoredStatus }> {
    const found: unknown = await this.#custom.getNamespacedCustomObject({
      group: "kinference.buoyant.io",
      version: "v1alpha1",
      plural: PLURALS.get(kind) ?? "",
      namespace,
      name,
    });
    return found as Resource & { status?: StoredStatus };
  }

  /** The conditions of an object, `TYPE=STATUS (REASON)`, once they are about its newest generation. */
  async conditions(namespace: string, kind: string, name: string): Promise<string[]> {
    let seen: string[] = [];
    await eventually(async () => {
      const { metadata, status } = await this.get(namespace, kind, name);
      const conditions = status?.conditions ?? [];
      seen = conditions.map(({ type, status, reason }) => `${type}=${status} (${reason})`);
      return conditions.length > 0 && conditions.every((one) => one.observedGeneration === metadata.generation);
    });
    return seen;
  }

  async message(namespace: string, kind: string, name: string, condition: string): Promise<string> {
    const { status } = await this.get(namespace, kind, name);
    return status?.conditions?.find(({ type }) => type === condition)?.message ?? "";
  }

  /** A Pod as the kubelet would report it: no node is needed. */
  async runningPod(namespace: string, name: string, labels: Record<string, string>, podIP: string): Promise<void> {
    const containers = [{ name: "vllm", image: "vllm" }];
    await this.core.createNamespacedPod({ namespace, body: { metadata: { name, labels }, spec: { containers } } });
    await this.podReady(namespace, name, true, podIP);
  }

  async podReady(namespace: string, name: string, ready: boolean, podIP: string): Promise<void> {
    const conditions = [{ type: "Ready", status: ready ? "True" : "False" }];
    const body = { status: { phase: "Running", podIP, podIPs: [{ ip: podIP }], conditions } };
    await this.core.patchNamespacedPodStatus(
      { namespace, name, body },
      setHeaderOptions("Content-Type", PatchStrategy.StrategicMergePatch),
    );
  }
}
