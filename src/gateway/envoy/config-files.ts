import { createHash } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { GatewayIr } from "../ir.ts";
import {
  handlerClusterConfig,
  poolClusterConfig,
  poolEndpoints,
  providerClusterConfig,
  providerSecret,
} from "./clusters.ts";
import { listenerConfig } from "./listeners.ts";
import { routeConfig } from "./routes.ts";
import { type JsonObject, typed } from "./typed.ts";
import type { EnvoyFeatures } from "./version.ts";

export interface EnvoySettings {
  features: EnvoyFeatures;
  maxBodyBytes: number;
  handler: { host: string; port: number };
}

/** One file of configuration by its name in the folder. */
export type EnvoyFiles = ReadonlyMap<string, JsonObject>;

/** Everything Envoy reads, as files that it watches: bootstrap, listeners, routes, clusters, endpoints. Pure. */
export function envoyFiles(ir: GatewayIr, settings: EnvoySettings, folder: string): EnvoyFiles {
  const watched = (file: string): JsonObject => ({
    path_config_source: { path: join(folder, file), watched_directory: { path: folder } },
    resource_api_version: "V3",
  });
  // Make before break: endpoints and clusters are written before the routes that name them.
  const files = new Map<string, JsonObject>();
  for (const pool of ir.pools) files.set(fileOf("eds", pool.cluster), resources(poolEndpoints(pool)));
  for (const provider of ir.providers) {
    if (provider.credential !== undefined)
      files.set(fileOf("sds", provider.cluster), resources(providerSecret(provider)));
  }
  const clusters = [
    ...ir.pools.map((pool) => poolClusterConfig(pool, watched(fileOf("eds", pool.cluster)))),
    ...ir.providers.map((provider) => providerClusterConfig(provider, watched(fileOf("sds", provider.cluster)))),
  ];
  files.set("cds.json", resources(...clusters.map((cluster) => typed("config.cluster.v3.Cluster", cluster))));
  for (const listener of ir.listeners)
    files.set(fileOf("rds", listener.name), resources(routeConfig(listener, settings.features)));
  const listeners = ir.listeners.map((listener) =>
    typed(
      "config.listener.v3.Listener",
      listenerConfig(listener, { ...settings, routesConfig: watched(fileOf("rds", listener.name)) }),
    ),
  );
  files.set("lds.json", resources(...listeners));
  files.set("bootstrap.json", bootstrap(settings, watched));
  return files;
}

/** Writes files whole, by renaming: Envoy never reads half a file. Secrets are in some, so only the owner may read. */
export function writeEnvoyFiles(files: EnvoyFiles, folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const [name, content] of files) {
    const next = join(folder, `.${name}.next`);
    writeFileSync(next, JSON.stringify(content, null, 1), { mode: 0o600 });
    renameSync(next, join(folder, name));
  }
}

function bootstrap(settings: EnvoySettings, watched: (file: string) => JsonObject): JsonObject {
  return {
    node: { id: "kinference", cluster: "kinference" },
    admin: { address: { socket_address: { address: "127.0.0.1", port_value: 0 } } },
    static_resources: { clusters: [handlerClusterConfig(settings.handler.host, settings.handler.port)] },
    dynamic_resources: { lds_config: watched("lds.json"), cds_config: watched("cds.json") },
  };
}

function resources(...list: JsonObject[]): JsonObject {
  return {
    version_info: createHash("sha256").update(JSON.stringify(list)).digest("hex").slice(0, 16),
    resources: list,
  };
}

function fileOf(kind: string, name: string): string {
  return `${kind}-${name.replaceAll(/[^A-Za-z0-9.-]/g, "_")}.json`;
}
