import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HandlerProcess } from "../../src/cli/handler-process.ts";
import type { EnvoyProcess } from "../../src/gateway/envoy/process.ts";
import { DEFAULT_HANDLER } from "../../src/handler/settings.ts";
import { loadFiles } from "../../src/resources/files.ts";
import { resourcesForWorkers } from "../../src/resources/worker-flags.ts";
import { startForeignEnvoy } from "../support/foreign-envoy.ts";
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
      ...DEFAULT_HANDLER,
      maxBodyBytes: 1 << 20,
      allowedPaths: ["/health"],
      debugHeaders: true,
      explainShare: 0,
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
