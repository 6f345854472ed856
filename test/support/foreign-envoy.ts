import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { type EnvoyProcess, startEnvoy } from "../../src/gateway/envoy/process.ts";

interface ForeignConfig {
  admin: unknown;
  static_resources: { listeners: [{ filter_chains: [{ filters: [{ typed_config: { http_filters: object[] } }] }] }] };
}

/** Somebody else's Envoy: the example that we ship, with the ports of this test and a filter that names a subset. */
export async function startForeignEnvoy(
  binary: string,
  listen: number,
  extProc: number,
  subset?: string,
): Promise<EnvoyProcess> {
  const example = readFileSync(new URL("../../envoy/endpoint-picker.yaml", import.meta.url), "utf8");
  const ports = { 9901: 0, 8080: listen, 9002: extProc };
  const config = parse(
    example.replace(/port_value: (\d+)/g, (_, port: keyof typeof ports) => `port_value: ${ports[port]}`),
  ) as ForeignConfig;
  if (subset !== undefined) {
    const metadata = [
      { metadata_namespace: "envoy.lb.subset_hint", value: { "x-gateway-destination-endpoint-subset": [subset] } },
    ];
    const typed_config = {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config",
      metadata,
    };
    config.static_resources.listeners[0].filter_chains[0].filters[0].typed_config.http_filters.unshift({
      name: "subset",
      typed_config,
    });
  }
  const folder = mkdtempSync(join(tmpdir(), "kinference-foreign-"));
  writeFileSync(join(folder, "bootstrap.json"), JSON.stringify(config));
  return startEnvoy(binary, folder, { concurrency: 1 });
}
