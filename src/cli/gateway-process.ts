import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { envoyFiles, writeEnvoyFiles } from "../gateway/envoy/config-files.ts";
import { type EnvoyProcess, readEnvoyVersion, startEnvoy } from "../gateway/envoy/process.ts";
import { type EnvoyFeatures, featuresOf } from "../gateway/envoy/version.ts";
import { type ListenAddress, snapshotToIr } from "../gateway/snapshot-to-ir.ts";
import type { Snapshot } from "../resources/snapshot.ts";

export interface GatewayOptions {
  envoy: string;
  listen: ListenAddress;
  handlerPort: number;
  maxBodyBytes: number;
  concurrency?: number;
}

/** The gateway on one machine: an Envoy of our own, configured by files. */
export class GatewayProcess {
  readonly version: string;
  readonly #options: GatewayOptions;
  readonly #features: EnvoyFeatures;
  readonly #folder = mkdtempSync(join(tmpdir(), "kinference-envoy-"));
  #envoy: EnvoyProcess | undefined;

  constructor(options: GatewayOptions) {
    const version = readEnvoyVersion(options.envoy);
    this.version = version.text;
    this.#features = featuresOf(version);
    this.#options = options;
  }

  get adminUrl(): string | undefined {
    return this.#envoy?.adminUrl;
  }

  /** Resolves when Envoy serves. */
  async start(snapshot: Snapshot): Promise<EnvoyProcess> {
    this.apply(snapshot);
    const { concurrency, envoy, listen } = this.#options;
    const listeners = snapshotToIr(snapshot, listen).listeners.map((listener) => listener.name);
    this.#envoy = await startEnvoy(envoy, this.#folder, {
      listeners,
      ...(concurrency === undefined ? {} : { concurrency }),
    });
    return this.#envoy;
  }

  /** Envoy takes over a new snapshot without dropping a connection. */
  apply(snapshot: Snapshot): void {
    const { listen, maxBodyBytes, handlerPort } = this.#options;
    const settings = { features: this.#features, maxBodyBytes, handler: { host: "127.0.0.1", port: handlerPort } };
    writeEnvoyFiles(envoyFiles(snapshotToIr(snapshot, listen), settings, this.#folder), this.#folder);
  }

  async stop(): Promise<void> {
    await this.#envoy?.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
