import type { GrpcCall } from "./grpc-server.ts";

export const HEALTH_METHOD = "/grpc.health.v1.Health/Check";
/** HealthCheckResponse { status: SERVING = 1 | NOT_SERVING = 2 } as encoded: field 1, varint. */
const SERVING = Uint8Array.of(0x08, 1);
const NOT_SERVING = Uint8Array.of(0x08, 2);

/** grpc.health.v1: the same answer for every service name, since all of them live and die together. */
export function serveHealth(call: GrpcCall, serving: () => boolean): void {
  call.onMessage = () => {
    call.send(serving() ? SERVING : NOT_SERVING);
    call.end();
  };
}
