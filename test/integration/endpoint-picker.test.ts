import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HandlerProcess } from "../../src/cli/handler-process.ts";
import { type EnvoyProcess, startEnvoy } from "../../src/gateway/envoy/process.ts";
import { loadFiles } from "../../src/resources/files.ts";
import { resourcesForWorkers } from "../../src/resources/worker-flags.ts";
import { freePort } from "../support/ports.ts";
import {
  chat,
  ENVOY_VERSIONS,
  envoyPath,
  eventually,
  post,
  Recording,
  startWorker,
  type TestWorker,
} from "../support/stack.ts";

/** Somebody else's Envoy, as the Gateway API inference extension prescribes: full duplex both ways, ORIGINAL_DST by header. */
async function startForeignEnvoy(
  binary: string,
  listen: number,
  extProc: number,
  subset: string | undefined,
): Promise<EnvoyProcess> {
  const address = (port: number) => ({ socket_address: { address: "127.0.0.1", port_value: port } });
  const type = (name: string) => `type.googleapis.com/envoy.extensions.filters.http.${name}`;
  const subsetFilter = {
    name: "subset",
    typed_config: {
      "@type": type("set_metadata.v3.Config"),
      metadata: [
        { metadata_namespace: "envoy.lb.subset_hint", value: { "x-gateway-destination-endpoint-subset": [subset] } },
      ],
    },
  };
  const filters = [
    ...(subset === undefined ? [] : [subsetFilter]),
    {
      name: "ext_proc",
      typed_config: {
        "@type": type("ext_proc.v3.ExternalProcessor"),
        grpc_service: { envoy_grpc: { cluster_name: "picker" } },
        processing_mode: {
          request_header_mode: "SEND",
          response_header_mode: "SEND",
          request_body_mode: "FULL_DUPLEX_STREAMED",
          response_body_mode: "FULL_DUPLEX_STREAMED",
          request_trailer_mode: "SEND",
          response_trailer_mode: "SEND",
        },
        metadata_options: { forwarding_namespaces: { untyped: ["envoy.lb.subset_hint"] } },
        message_timeout: "600s",
      },
    },
    { name: "router", typed_config: { "@type": type("router.v3.Router") } },
  ];
  const manager = {
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    stat_prefix: "foreign",
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: "chosen", timeout: "60s" } }],
        },
      ],
    },
    http_filters: filters,
  };
  const config = {
    admin: { address: address(0) },
    static_resources: {
      listeners: [
        { name: "l", address: address(listen), filter_chains: [{ filters: [{ name: "hcm", typed_config: manager }] }] },
      ],
      clusters: [
        {
          name: "chosen",
          type: "ORIGINAL_DST",
          lb_policy: "CLUSTER_PROVIDED",
          original_dst_lb_config: { use_http_header: true, http_header_name: "x-gateway-destination-endpoint" },
        },
        {
          name: "picker",
          type: "STATIC",
          typed_extension_protocol_options: {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
              "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
          load_assignment: {
            cluster_name: "picker",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(extProc) } }] }],
          },
        },
      ],
    },
  };
  const folder = mkdtempSync(join(tmpdir(), "kinference-foreign-"));
  writeFileSync(join(folder, "bootstrap.json"), JSON.stringify(config));
  return startEnvoy(binary, folder, { concurrency: 1 });
}

describe.each(ENVOY_VERSIONS)("the handler alone, as endpoint picker of somebody else's Envoy %s", (version) => {
  let workers: TestWorker[];
  let handler: HandlerProcess;
  let recording: Recording;
  const envoys: EnvoyProcess[] = [];
  let url: string;
  let extProc: number;

  beforeAll(async () => {
    workers = [await startWorker(), await startWorker()];
    const declared = loadFiles(
      [],
      resourcesForWorkers(
        workers.map((w) => w.url),
        false,
      ),
    );
    if (!declared.ok) throw new Error("no snapshot");
    recording = new Recording();
    handler = new HandlerProcess({
      snapshot: declared.snapshot,
      log: pino({ level: "silent" }),
      maxBodyBytes: 1 << 20,
      allowedPaths: ["/health"],
      debugHeaders: true,
      foreignFallbacks: 0,
      recorder: recording,
    });
    await handler.apply(declared.snapshot);
    extProc = await handler.service.listen("127.0.0.1", 0);
    url = await foreign(undefined);
  });
  afterAll(async () => {
    for (const envoy of envoys) await envoy.stop();
    await handler?.close(0);
    for (const { worker } of workers) await worker.close();
  });
  async function foreign(subset: string | undefined): Promise<string> {
    const listen = await freePort();
    envoys.push(await startForeignEnvoy(envoyPath(version), listen, extProc, subset));
    return `http://127.0.0.1:${listen}`;
  }

  test("picks by cache, echoes bodies whole, and learns usage and TTFT from the stream", async () => {
    const prompt = "a prompt that is long enough to be cached ".repeat(30);
    const first = await chat(url, prompt, { max_tokens: 10 });
    expect(first.status).toBe(200);
    expect((first.json.usage as { completion_tokens: number }).completion_tokens).toBe(10);
    for (let i = 0; i < 4; i++) {
      const again = await chat(url, prompt, { max_tokens: 50, stream: true, stream_options: { include_usage: true } });
      expect(again.headers.get("x-kinference-worker")).toBe(first.headers.get("x-kinference-worker"));
      expect(again.text.match(/"content":" /g)?.length).toBe(50);
      expect(again.text.endsWith("data: [DONE]\n\n")).toBe(true);
    }
    await eventually(() => recording.outcomes.length === 5);
    const outcome = recording.outcomes.at(-1)?.outcome;
    expect(outcome).toMatchObject({ outcome: "ok", outputTokens: 50 });
    expect(outcome?.cachedTokens).toBeGreaterThan(100);
    expect(outcome?.ttftMs).toBeGreaterThan(0);
  });

  test("large bodies, errors, GETs and allowed paths", async () => {
    const large = await chat(url, "word ".repeat(30_000));
    expect((large.json.usage as { prompt_tokens: number }).prompt_tokens).toBeGreaterThan(30_000);
    expect((await post(`${url}/v1/chat/completions`, Buffer.alloc((1 << 20) + 1, "a"))).status).toBe(413);
    expect((await chat(url, "hi", { model: "nope" })).status).toBe(404);
    expect(((await (await fetch(`${url}/v1/models`)).json()) as { data: unknown[] }).data).toHaveLength(1);
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/metrics`)).status).toBe(404);
    expect(handler.service.flights.size).toBe(0);
  });

  test("a subset is obeyed; a subset that nobody is in gets 503", async () => {
    const only = workers[1];
    if (only === undefined) throw new Error("two workers");
    const narrowed = await foreign(`127.0.0.1:${only.port}`);
    for (let i = 0; i < 4; i++)
      expect((await chat(narrowed, `prompt ${i}`)).headers.get("x-kinference-worker")).toBe(`127.0.0.1:${only.port}`);
    const nobody = await foreign("10.1.1.1:8000");
    expect((await chat(nobody, "hi")).status).toBe(503);
  });
});
