import { loadProto, type PlainValue, type ProtoStruct, toProtoStruct } from "../grpc/proto.ts";

const root = loadProto("ext_proc.proto");
const requestType = root.lookupType("envoy.service.ext_proc.v3.ProcessingRequest");
const responseType = root.lookupType("envoy.service.ext_proc.v3.ProcessingResponse");

export const EXT_PROC_METHOD = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";

export const BODY_MODE = { none: 0, streamed: 1, buffered: 2, bufferedPartial: 3, fullDuplex: 4 } as const;

export interface WireHeaders {
  headers?: { headers?: { key: string; value?: string; raw_value?: Uint8Array }[] };
  end_of_stream?: boolean;
}
export interface WireBody {
  body?: Uint8Array;
  end_of_stream?: boolean;
}
export interface ProcessingRequest {
  request_headers?: WireHeaders;
  response_headers?: WireHeaders;
  request_body?: WireBody;
  response_body?: WireBody;
  request_trailers?: object;
  response_trailers?: object;
  metadata_context?: { filter_metadata?: { [namespace: string]: ProtoStruct } };
  attributes?: { [name: string]: ProtoStruct };
  protocol_config?: { request_body_mode?: number; response_body_mode?: number };
}

export function decodeRequest(bytes: Buffer): ProcessingRequest {
  return requestType.decode(bytes) as unknown as ProcessingRequest;
}

/** What Envoy would send; for warming up. */
export function encodeRequest(request: ProcessingRequest): Uint8Array {
  return requestType.encode(request).finish();
}

/** Headers by lower-case name; values of a header that comes more than once are joined by `,` as Envoy would. */
export function readHeaders(wire: WireHeaders): Map<string, string> {
  const headers = new Map<string, string>();
  for (const { key, value, raw_value } of wire.headers?.headers ?? []) {
    const text = raw_value !== undefined && raw_value.length > 0 ? asBuffer(raw_value).toString("utf8") : (value ?? "");
    const known = headers.get(key);
    headers.set(key, known === undefined ? text : `${known},${text}`);
  }
  return headers;
}

/** The bytes of a body message; protobufjs gives an empty array, not a Buffer, for none. */
export function bodyBytes(wire: WireBody): Buffer {
  return wire.body === undefined || wire.body.length === 0 ? EMPTY : asBuffer(wire.body);
}

const EMPTY = Buffer.alloc(0);

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export interface HeaderChanges {
  set: Record<string, string>;
  remove: readonly string[];
}

const OVERWRITE = 2;

function mutation(changes: HeaderChanges): object {
  return {
    set_headers: Object.entries(changes.set).map(([key, value]) => ({
      header: { key, raw_value: Buffer.from(value) },
      append_action: OVERWRITE,
    })),
    remove_headers: changes.remove,
  };
}

function encode(response: object): Uint8Array {
  return responseType.encode(response).finish();
}

type HeadersPhase = "request_headers" | "response_headers";
type BodyPhase = "request_body" | "response_body";
export type Metadata = { [namespace: string]: { [key: string]: PlainValue } };

/** Lets headers go on, changed; `metadata` goes into the request's dynamic metadata. */
export function headersReply(phase: HeadersPhase, changes?: HeaderChanges, metadata?: Metadata): Uint8Array {
  const response =
    changes === undefined ? {} : { header_mutation: mutation(changes), clear_route_cache: phase === "request_headers" };
  return encode({
    [phase]: { response },
    ...(metadata === undefined ? {} : { dynamic_metadata: toProtoStruct(metadata) }),
  });
}

/** Lets a buffered request body go on, with its headers changed and the body replaced if another is given. */
export function bufferedBodyReply(changes: HeaderChanges, metadata: Metadata, body?: Uint8Array): Uint8Array {
  // Envoy keeps the length that the client stated, and refuses a body of another.
  const set = body === undefined ? changes.set : { ...changes.set, "content-length": String(body.length) };
  const response = {
    header_mutation: mutation({ ...changes, set }),
    clear_route_cache: true,
    ...(body === undefined ? {} : { body_mutation: { body } }),
  };
  return encode({ request_body: { response }, dynamic_metadata: toProtoStruct(metadata) });
}

/** Lets a body chunk go on as it is (body modes other than full duplex). */
export function chunkReply(phase: BodyPhase): Uint8Array {
  return encode({ [phase]: { response: {} } });
}

/** A piece of a full-duplex body. */
export function duplexReply(phase: BodyPhase, body: Uint8Array, endOfStream: boolean): Uint8Array {
  return encode({
    [phase]: { response: { body_mutation: { streamed_response: { body, end_of_stream: endOfStream } } } },
  });
}

export function trailersReply(phase: "request_trailers" | "response_trailers"): Uint8Array {
  return encode({ [phase]: {} });
}

/** Answers the client instead of any upstream. */
export function immediateReply(
  status: number,
  headers: Record<string, string>,
  body: string,
  details: string,
): Uint8Array {
  return encode({
    immediate_response: {
      status: { code: status },
      headers: mutation({ set: headers, remove: [] }),
      body: Buffer.from(body),
      details,
    },
  });
}

/** A value that Envoy put into the metadata of the request, if it is there. */
export function metadataValue(request: ProcessingRequest, namespace: string, key: string) {
  return request.metadata_context?.filter_metadata?.[namespace]?.fields?.[key];
}

/** An attribute such as `upstream.address`, if Envoy was configured to send it. */
export function attribute(request: ProcessingRequest, name: string): string | undefined {
  for (const struct of Object.values(request.attributes ?? {})) {
    const value = struct.fields?.[name]?.stringValue;
    if (value !== undefined) return value;
  }
  return undefined;
}
