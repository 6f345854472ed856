import { gzipSync } from "node:zlib";
import { beforeEach, expect, test } from "vitest";
import { buildSnapshot } from "../../resources/snapshot.ts";
import type { OutcomeRecord } from "../../telemetry/records.ts";
import { DEFAULT_MONITOR } from "../../workers/worker-monitor.ts";
import { Fleet } from "../fleet.ts";
import { FlightTable } from "../flight-table.ts";
import type { GrpcCall } from "../grpc/grpc-server.ts";
import { loadProto } from "../grpc/proto.ts";
import { InferenceHandler } from "../handler.ts";
import { ALONE, DEFAULT_HANDLER } from "../settings.ts";
import { BODY_MODE, encodeRequest, type ProcessingRequest } from "./messages.ts";
import { ExtProcSession } from "./session.ts";

const responseType = loadProto("ext_proc.proto").lookupType("envoy.service.ext_proc.v3.ProcessingResponse");
type Reply = Record<string, { response?: unknown; status?: { code: number } }>;

/** A call without a network: what the session sent, and how it ended. */
class FakeCall implements GrpcCall {
  readonly connection = {};
  readonly sent: Reply[] = [];
  ended: number | undefined;
  onMessage: (message: Buffer) => void = () => {};
  onHalfClose: () => void = () => {};
  onClose: () => void = () => {};
  metadata(): undefined {}
  send(...messages: Uint8Array[]): void {
    for (const message of messages) this.sent.push(responseType.decode(message) as unknown as Reply);
  }
  end(status = 0): void {
    this.ended ??= status;
  }
  receive(message: ProcessingRequest): void {
    this.onMessage(Buffer.from(encodeRequest(message)));
  }
  kinds(): string[] {
    return this.sent.map((reply) => Object.keys(reply).find((key) => key !== "dynamic_metadata") ?? "");
  }
}

let fleet: Fleet;
let flights: FlightTable;
let outcomes: OutcomeRecord[];
let bugs: unknown[];
let call: FakeCall;

beforeEach(async () => {
  const page = JSON.stringify({ data: [{ id: "m" }] });
  fleet = new Fleet(
    async (url) => ({ status: 200, body: url.endsWith("/v1/models") ? page : "" }),
    () => 0,
    DEFAULT_MONITOR,
    () => {},
  );
  await fleet.replace([{ address: "10.0.0.1:8000", name: "w", pool: "p" }]);
  fleet.stop();
  outcomes = [];
  bugs = [];
  const recorder = {
    decided() {},
    refused() {},
    ended: (_: unknown, outcome: OutcomeRecord) => outcomes.push(outcome),
  };
  const handler = new InferenceHandler(buildSnapshot([]), fleet, recorder, { ...ALONE, now: () => 0 }, DEFAULT_HANDLER);
  flights = new FlightTable(() => 0);
  call = new FakeCall();
  new ExtProcSession(
    call,
    handler,
    flights,
    () => 0,
    (error) => bugs.push(error),
  );
});

const inFlight = () => [...fleet.workers.all()].map((worker) => [worker.inFlight, worker.queuedTokens, flights.size]);
const settle = () => new Promise((resolve) => setTimeout(resolve, 30));
const BODY = Buffer.from(JSON.stringify({ model: "m", messages: [{ role: "user", content: "hello there" }] }));

function start(mode: number = BODY_MODE.fullDuplex, more: Record<string, string> = {}): void {
  const headers = Object.entries({ ":method": "POST", ":path": "/v1/chat/completions", ...more });
  call.receive({
    request_headers: { headers: { headers: headers.map(([key, value]) => ({ key, raw_value: Buffer.from(value) })) } },
    protocol_config: { request_body_mode: mode, response_body_mode: BODY_MODE.fullDuplex },
  });
}

test("a stream that is half-closed in the middle of a body leaves nothing behind", async () => {
  start();
  call.receive({ request_body: { body: BODY.subarray(0, 10) } });
  call.onHalfClose();
  call.onClose();
  await settle();
  expect([call.ended, call.sent, inFlight(), bugs]).toEqual([0, [], [[0, 0, 0]], []]);
});

test("a client that leaves while its body is being decoded leaves nothing reserved", async () => {
  start(BODY_MODE.fullDuplex, { "content-encoding": "gzip" });
  call.receive({ request_body: { body: gzipSync(BODY), end_of_stream: true } });
  call.onClose();
  await settle();
  expect([call.sent, inFlight(), outcomes.map((o) => o.outcome)]).toEqual([[], [[0, 0, 0]], ["client-gone"]]);
});

test("a stream that is half-closed after the decision ends the flight", async () => {
  start();
  call.receive({ request_body: { body: BODY, end_of_stream: true } });
  await settle();
  expect([call.kinds(), inFlight()[0]?.[0]]).toEqual([["request_headers", "request_body"], 1]);
  call.onHalfClose();
  expect([call.ended, inFlight(), outcomes.map((o) => o.outcome)]).toEqual([0, [[0, 0, 0]], ["client-gone"]]);
});

test("trailers may end a request, and an empty last piece too", async () => {
  start();
  call.receive({ request_body: { body: BODY } });
  call.receive({ request_trailers: {} });
  await settle();
  expect(call.kinds()).toEqual(["request_headers", "request_body", "request_trailers"]);
});

test.each([BODY_MODE.none, BODY_MODE.streamed, BODY_MODE.bufferedPartial])(
  "body mode %i cannot work and says so",
  (mode) => {
    start(mode);
    expect(call.sent[0]?.immediate_response?.status?.code).toBe(500);
  },
);

test("bytes that are no message end the call; messages in no order do no harm", async () => {
  call.receive({ response_body: { body: Buffer.from("x"), end_of_stream: true } });
  call.receive({ request_body: { body: BODY, end_of_stream: true } });
  call.receive({ response_trailers: {} });
  await settle();
  expect([inFlight(), bugs]).toEqual([[[0, 0, 0]], []]);
  call.onMessage(Buffer.from([0xff, 0xff, 0xff]));
  expect(call.ended).toBe(3);
});
