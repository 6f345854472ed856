import type { Resource } from "../api/resource.ts";
import { POOL_LABEL } from "../api/standard-kinds.ts";

const POOL_NAME = "workers";

/** The objects that `--worker URL` flags stand for: one pool and its endpoints. Throws a message for the user. */
export function resourcesForWorkers(urls: readonly string[], failOpen: boolean): Resource[] {
  if (urls.length === 0) return [];
  const endpoints = urls.map(parseWorker);
  const metadata = { name: POOL_NAME, namespace: "default" };
  const pool = {
    apiVersion: "inference.networking.k8s.io/v1",
    kind: "InferencePool",
    metadata,
    spec: {
      selector: { matchLabels: { app: POOL_NAME } },
      targetPorts: [{ number: 8000 }],
      endpointPickerRef: { name: "kinference", failureMode: failOpen ? "FailOpen" : "FailClose" },
    },
  };
  const slices = endpoints.map(({ host, port }, i) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `${POOL_NAME}-${i}`, namespace: "default", labels: { [POOL_LABEL]: POOL_NAME } },
    spec: undefined,
    addressType: "IPv4",
    endpoints: [{ addresses: [host], targetRef: { name: `${host}:${port}` } }],
    ports: [{ port }],
  }));
  return [pool, ...slices];
}

function parseWorker(text: string): { host: string; port: number } {
  const url = URL.parse(text);
  if (url === null || url.hostname === "")
    throw new Error(`--worker ${text}: not a URL; write for example http://gpu1:8000`);
  if (url.protocol !== "http:") throw new Error(`--worker ${text}: only http:// workers are supported`);
  if (url.pathname !== "/" || url.search !== "")
    throw new Error(`--worker ${text}: a worker is a host and a port, without a path`);
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port === "" ? 80 : Number(url.port) };
}
