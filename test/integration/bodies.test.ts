import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import { brotliCompress, deflate, gzip, zstdCompress } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  chat,
  ENVOY_VERSIONS,
  eventually,
  poolYaml,
  post,
  resourceFile,
  type Stack,
  startStack,
  startWorker,
  type TestWorker,
} from "../support/stack.ts";

/** The default limit. */
const MAX_BODY = 32 << 20;

// Full duplex is how a closed-failing pool is served, buffered how an open-failing one is.
const MODES = ENVOY_VERSIONS.flatMap((version) => [[version, "FailClose"] as const, [version, "FailOpen"] as const]);

describe.each(MODES)("bodies through Envoy %s, %s", (version, failureMode) => {
  let worker: TestWorker;
  let stack: Stack;
  beforeAll(async () => {
    worker = await startWorker({ maxModelLen: 4_000_000, blocks: 300_000, prefillTokensPerSecond: 1e8 });
    stack = await startStack(version, {
      file: [resourceFile(poolYaml("pool", "default", [worker], failureMode))],
      maxBody: MAX_BODY,
    });
  });
  afterAll(async () => {
    await stack?.stop();
    await worker?.worker.close();
  });

  /** Sends a chunked body in the given pieces, each in a packet of its own if possible, and reads the answer's head. */
  async function sendPieces(pieces: Buffer[]): Promise<string> {
    const socket: Socket = connect(Number(new URL(stack.url).port), "127.0.0.1");
    socket.setNoDelay(true);
    await once(socket, "connect");
    socket.write(
      "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    for (const piece of pieces) {
      socket.write(`${piece.length.toString(16)}\r\n`);
      socket.write(piece);
      socket.write("\r\n");
      await new Promise((resolve) => setImmediate(resolve));
    }
    socket.write("0\r\n\r\n");
    let answer = "";
    for await (const data of socket) answer += data;
    return answer;
  }

  test("chunk boundaries may be anywhere, inside characters and escapes too", async () => {
    const text = 'grüße 曰 😀 "quoted" \\ back \u0001';
    const body = Buffer.from(
      JSON.stringify({ model: "m", max_tokens: 2, messages: [{ role: "user", content: text }] }).replace(
        "grüße",
        "gr\\u00fc\\u00dfe",
      ),
    );
    const bytewise = await sendPieces([...body].map((byte) => Buffer.of(byte)));
    expect(bytewise).toContain("HTTP/1.1 200");
    for (const at of [1, 40, body.indexOf("曰") + 1, body.indexOf("😀") + 2, body.indexOf("\\u00fc") + 3]) {
      expect(await sendPieces([body.subarray(0, at), body.subarray(at)])).toContain("HTTP/1.1 200");
    }
  });

  test("a body of several megabytes arrives whole", async () => {
    const reply = await chat(stack.url, "word ".repeat(700_000));
    expect(reply.status, reply.text.slice(0, 300)).toBe(200);
    // Each word is one token of the simulator's, so that a lost or doubled piece would show.
    expect((reply.json.usage as { prompt_tokens: number }).prompt_tokens).toBeGreaterThan(700_000);
    const again = await chat(stack.url, "word ".repeat(700_000));
    expect(again.json.usage).toMatchObject({
      prompt_tokens: (reply.json.usage as { prompt_tokens: number }).prompt_tokens,
    });
  });

  test("above the limit: 413 in the API's own shape, and the connection is usable after", async () => {
    for (const [path, type] of [
      ["/v1/chat/completions", undefined],
      ["/v1/messages", "error"],
    ] as const) {
      const reply = await post(`${stack.url}${path}`, Buffer.alloc(MAX_BODY + 1, "a"));
      expect(reply.status).toBe(413);
      expect(reply.json.type).toBe(type);
      expect((reply.json.error as { message: string }).message).toContain("larger than the limit");
    }
    const just = Buffer.from(
      JSON.stringify({ model: "m", max_tokens: 1, messages: [{ role: "user", content: "" }], padding: "" }),
    );
    const padded = Buffer.from(
      just.toString().replace('"padding":""', `"padding":"${"p".repeat(MAX_BODY - just.length)}"`),
    );
    expect(padded.length).toBe(MAX_BODY);
    expect((await post(`${stack.url}/v1/chat/completions`, padded)).status).toBe(200);
  });

  test("encoded bodies are read, and refused where they cannot be", async () => {
    const body = JSON.stringify({ model: "m", max_tokens: 2, messages: [{ role: "user", content: "hello" }] });
    const send = (bytes: Buffer, encoding: string) =>
      post(`${stack.url}/v1/chat/completions`, bytes, { "content-encoding": encoding });
    expect((await send(await promisify(gzip)(body), "gzip")).status).toBe(200);
    expect((await send(await promisify(brotliCompress)(body), "br")).status).toBe(200);
    expect((await send(await promisify(zstdCompress)(Buffer.from(body)), "zstd")).status).toBe(200);
    expect((await send(await promisify(deflate)(body), "deflate")).status).toBe(415);
    expect((await send(await promisify(gzip)(body), "gzip, gzip")).status).toBe(415);
    expect((await send(Buffer.from(body), "gzip")).status).toBe(400);
    const bomb = await promisify(gzip)(Buffer.alloc(MAX_BODY * 4, " "));
    expect((await send(bomb, "gzip")).status).toBe(413);
  });

  test("an empty body, a body that stops, and a client that leaves", async () => {
    expect((await post(`${stack.url}/v1/chat/completions`, "")).status).toBe(400);
    const before = stack.recording.outcomes.length;
    const half = connect(Number(new URL(stack.url).port), "127.0.0.1");
    half.write("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{");
    await new Promise((resolve) => setTimeout(resolve, 50));
    half.destroy();
    const controller = new AbortController();
    const request = fetch(`${stack.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "m",
        max_tokens: 5000,
        stream: true,
        messages: [{ role: "user", content: "a long story" }],
      }),
      signal: controller.signal,
    });
    const response = await request;
    const reader = response.body?.getReader();
    await reader?.read();
    controller.abort();
    await eventually(() => stack.recording.outcomes.length > before);
    expect(stack.recording.outcomes.at(-1)?.outcome.outcome).toBe("client-gone");
    await stack.settled();
    const state = (await (await fetch(`${stack.adminUrl}/state`)).json()) as {
      workers: { inFlight: number; queuedTokens: number }[];
    };
    expect(state.workers.map((w) => [w.inFlight, w.queuedTokens])).toEqual([[0, 0]]);
  });

  test("a client cannot choose its worker, its route or Envoy's behaviour", async () => {
    const other = await startWorker();
    const headers = {
      "x-gateway-destination-endpoint": `127.0.0.1:${other.port}`,
      "x-kinference-cluster": "provider/default/x",
      "x-kinference-observe": "access-log",
      "x-envoy-upstream-rq-timeout-ms": "1",
      "x-envoy-max-retries": "100",
      "x-envoy-retry-on": "5xx",
    };
    const reply = await post(
      `${stack.url}/v1/chat/completions`,
      { model: "m", max_tokens: 20, messages: [{ role: "user", content: "hi" }] },
      headers,
    );
    expect(reply.status).toBe(200);
    expect(reply.headers.get("x-kinference-worker")).toBe("pool-0");
    expect(other.worker.served).toBe(0);
    await other.worker.close();
  });
});
