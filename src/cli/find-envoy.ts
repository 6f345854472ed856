import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const INSTALLED = fileURLToPath(new URL("../../.cache/envoy/1.40/envoy", import.meta.url));

/** The Envoy to run: `$ENVOY`, the one that `make envoy` installed, or the one on the PATH. */
export function findEnvoy(): string {
  return process.env.ENVOY || (existsSync(INSTALLED) ? INSTALLED : "envoy");
}
