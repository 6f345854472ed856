import type { Logger } from "pino";
import { undeclaredNames } from "../analysis/names.ts";
import { configurationProblems } from "../handler/configuration.ts";
import { connectKubernetes, KubernetesSource } from "../resources/kubernetes/kubernetes-source.ts";
import { referenceProblems } from "../resources/references.ts";
import type { Snapshot } from "../resources/snapshot.ts";
import type { DeclaredSource } from "../resources/snapshot-user.ts";
import { type ResourceFlags, UsageError } from "./declared-resources.ts";

/** What Kubernetes declares. Throws what is wrong with the flags. */
export async function kubernetesSource(
  flags: ResourceFlags & { namespace?: string },
  log: Logger,
): Promise<DeclaredSource> {
  if (flags.worker !== undefined || flags.file !== undefined)
    throw new UsageError("--kubernetes takes resources from Kubernetes alone: leave out --worker and --file");
  const { client, config } = await connectKubernetes();
  if (config.getCurrentCluster() === null)
    throw new UsageError("--kubernetes: no API server is known; set KUBECONFIG, or run in a Pod");
  return new KubernetesSource(client, config, {
    namespace: flags.namespace,
    checks: {
      mistakes: configurationProblems,
      references: (snapshot: Snapshot) => [...referenceProblems(snapshot), ...undeclaredNames(snapshot)],
    },
    log,
    epochMs: Date.now,
  });
}
