import type { Logger } from "pino";
import type { Snapshot } from "../resources/snapshot.ts";
import type { Recorder } from "../telemetry/records.ts";
import { declaredOrThrow, UsageError } from "./declared-resources.ts";
import { followDeclared } from "./declared-source.ts";
import { findEnvoy } from "./find-envoy.ts";
import { GatewayProcess } from "./gateway-process.ts";
import { type HandlerFlags, handlerSettings } from "./handler-flags.ts";
import { HandlerProcess } from "./handler-process.ts";

export interface UpFlags extends HandlerFlags {
  listen: { address: string; port: number };
  admin: { address: string; port: number };
  concurrency?: number;
  /** Path of the Envoy to run. */
  envoy?: string;
}

/** What `up` started. */
export interface Running {
  url: string;
  adminUrl: string;
  envoyVersion: string;
  handler: HandlerProcess;
  gateway: GatewayProcess;
  /** Resolves when Envoy is gone. */
  exited: Promise<number | null>;
  stop(): Promise<void>;
}

/** Runs gateway, handler and Envoy on this machine until stopped. */
export async function up(flags: UpFlags, log: Logger, recorder?: Recorder): Promise<Running> {
  const declared = declaredOrThrow(flags);
  if (declared.snapshot.pools.length === 0)
    throw new UsageError("no workers: give --worker URL, or an InferencePool with -f");
  const handler = new HandlerProcess({
    snapshot: declared.snapshot,
    log,
    ...handlerSettings(flags, 0),
    ...(recorder ? { recorder } : {}),
  });
  const stopHandler = async (error: unknown): Promise<never> => {
    await handler.close(0);
    throw error;
  };
  const handlerPort = await handler.service.listen("127.0.0.1", 0);
  const snapshot = await handler.apply(declared.snapshot);
  const { gateway, envoy } = await startGateway(flags, handlerPort, snapshot).catch(stopHandler);
  const adminPort = await handler.serveAdmin(flags.admin.address, flags.admin.port).catch(async (error: unknown) => {
    await gateway.stop();
    return stopHandler(error);
  });
  handler.setReady(true);

  const following = followDeclared(
    flags,
    declared.snapshot,
    {
      apply: async (next) => gateway.apply(await handler.apply(next)),
      setStatuses: (statuses) => handler.setStatuses(statuses),
    },
    log,
  );

  return {
    url: `http://${reachable(flags.listen.address)}:${flags.listen.port}`,
    adminUrl: `http://${reachable(flags.admin.address)}:${adminPort}`,
    envoyVersion: gateway.version,
    handler,
    gateway,
    exited: envoy.exited,
    async stop() {
      following.close();
      await gateway.stop();
      await handler.close(1000);
    },
  };
}

async function startGateway(flags: UpFlags, handlerPort: number, snapshot: Snapshot) {
  const gateway = new GatewayProcess({
    envoy: flags.envoy ?? findEnvoy(),
    listen: flags.listen,
    handlerPort,
    maxBodyBytes: flags.maxBody,
    ...(flags.concurrency === undefined ? {} : { concurrency: flags.concurrency }),
  });
  return { gateway, envoy: await gateway.start(snapshot) };
}

function reachable(address: string): string {
  if (address === "0.0.0.0" || address === "::") return "127.0.0.1";
  return address.includes(":") ? `[${address}]` : address;
}
