import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EnvoyProcess, startEnvoy } from "../src/gateway/envoy/process.ts";

/** What one has without Kinference: an Envoy that deals each model's requests out in turn. */
export async function startRoundRobin(
  envoy: string,
  services: readonly { listen: number; workers: readonly number[] }[],
): Promise<EnvoyProcess> {
  const listeners = services.map(({ listen }, i) => ({
    name: `service-${i}`,
    address: address(listen),
    filter_chains: [
      {
        filters: [
          {
            name: "hcm",
            typed_config: {
              "@type":
                "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
              stat_prefix: "service",
              route_config: {
                virtual_hosts: [
                  {
                    name: "all",
                    domains: ["*"],
                    routes: [{ match: { prefix: "/" }, route: { cluster: `service-${i}`, timeout: "0s" } }],
                  },
                ],
              },
              http_filters: [
                {
                  name: "router",
                  typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
                },
              ],
            },
          },
        ],
      },
    ],
  }));
  const clusters = services.map(({ workers }, i) => ({
    name: `service-${i}`,
    type: "STATIC",
    lb_policy: "ROUND_ROBIN",
    load_assignment: {
      cluster_name: `service-${i}`,
      endpoints: [{ lb_endpoints: workers.map((port) => ({ endpoint: { address: address(port) } })) }],
    },
  }));
  const folder = mkdtempSync(join(tmpdir(), "kinference-demo-"));
  writeFileSync(
    join(folder, "bootstrap.json"),
    JSON.stringify({ admin: { address: address(0) }, static_resources: { listeners, clusters } }),
  );
  return startEnvoy(envoy, folder, { concurrency: 1 });
}

function address(port: number) {
  return { socket_address: { address: "127.0.0.1", port_value: port } };
}
