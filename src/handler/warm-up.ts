import http2 from "node:http2";
import { OBSERVE_METADATA } from "../api/wire.ts";
import { buildSnapshot } from "../resources/snapshot.ts";
import { recordToAll } from "../telemetry/recent-decisions.ts";
import { DEFAULT_MONITOR } from "../workers/worker-monitor.ts";
import { BODY_MODE, EXT_PROC_METHOD, encodeRequest, type ProcessingRequest } from "./ext-proc/messages.ts";
import { Fleet } from "./fleet.ts";
import { frame } from "./grpc/framing.ts";
import { InferenceHandler } from "./handler.ts";
import { HandlerService } from "./service.ts";
import { ALONE, DEFAULT_HANDLER } from "./settings.ts";

const CHUNKS = 20;
const CONCURRENT = 8;

/**
 * Sends requests through a handler of its own, over loopback, so that the first real ones already meet compiled code:
 * without it they take several times as long. Nothing of it is seen by the real handler.
 */
export async function warmUp(requests = 600): Promise<void> {
  const now = () => performance.now();
  const models = JSON.stringify({ data: [{ id: "m" }] });
  const fleet = new Fleet(
    async (url) => ({ status: 200, body: url.endsWith("/v1/models") ? models : "" }),
    now,
    DEFAULT_MONITOR,
    () => {},
  );
  await fleet.replace([1, 2].map((i) => ({ address: `127.0.0.1:${i}`, name: `w${i}`, pool: "p" })));
  const handler = new InferenceHandler(buildSnapshot([]), fleet, recordToAll([]), ALONE, DEFAULT_HANDLER);
  const service = new HandlerService(handler, now, () => {});
  const port = await service.listen("127.0.0.1", 0);
  const session = http2.connect(`http://127.0.0.1:${port}`);
  let sent = 0;
  const client = async () => {
    while (sent++ < requests) await exchange(session, sent);
  };
  await Promise.all(Array.from({ length: CONCURRENT }, client));
  session.close();
  await service.close(0);
  fleet.stop();
}

/** One request as Envoy would bring it, with its streamed response. */
function exchange(session: http2.ClientHttp2Session, number: number): Promise<void> {
  const duplex = number % 2 === 0;
  const protocol_config = {
    request_body_mode: BODY_MODE.fullDuplex,
    response_body_mode: duplex ? BODY_MODE.fullDuplex : BODY_MODE.streamed,
  };
  const content = `request ${number}: ${"some words to read and to hash ".repeat(number % 64)}`;
  const body = JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content }] });
  const event = Buffer.from(`data: {"choices":[{"delta":{"content":"word ${number}"}}],"usage":null}\n\n`);
  const requestMessages: ProcessingRequest[] = [
    {
      request_headers: headersOf({
        ":method": "POST",
        ":path": "/v1/chat/completions",
        "content-type": "application/json",
      }),
      protocol_config,
    },
    { request_body: { body: Buffer.from(body), end_of_stream: true } },
  ];
  const responseMessages: ProcessingRequest[] = [
    { response_headers: headersOf({ ":status": "200", "content-type": "text/event-stream" }) },
    ...Array.from({ length: CHUNKS }, (_, i) => ({ response_body: { body: event, end_of_stream: i === CHUNKS - 1 } })),
  ];
  return new Promise((resolve, reject) => {
    const observe = duplex ? {} : { [OBSERVE_METADATA]: "in-stream" };
    const stream = session.request({
      ":method": "POST",
      ":path": EXT_PROC_METHOD,
      "content-type": "application/grpc",
      ...observe,
    });
    const send = (messages: ProcessingRequest[]) => {
      for (const message of messages) stream.write(frame([encodeRequest(message)]));
    };
    stream.once("error", reject);
    stream.once("close", resolve);
    // Envoy, too, resets a call that the server has ended.
    stream.once("end", () => stream.close());
    // The response begins once the decision is there.
    stream.once("data", () => send(responseMessages));
    stream.resume();
    send(requestMessages);
  });
}

function headersOf(headers: Record<string, string>) {
  return {
    headers: { headers: Object.entries(headers).map(([key, value]) => ({ key, raw_value: Buffer.from(value) })) },
  };
}
