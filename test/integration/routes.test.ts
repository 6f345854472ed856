import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../support/ports.ts";
import {
  chat,
  ENVOY_VERSIONS,
  poolYaml,
  post,
  resourceFile,
  type Stack,
  startStack,
  startWorker,
  type TestWorker,
} from "../support/stack.ts";

describe.each(ENVOY_VERSIONS)("Gateways and HTTPRoutes through Envoy %s", (version) => {
  let workers: TestWorker[];
  let stack: Stack;
  let ports: { open: number; guarded: number };

  beforeAll(async () => {
    workers = [await startWorker({ models: ["m"] }), await startWorker({ models: ["m", "canary-only"] })];
    const [stable, canary] = workers;
    if (stable === undefined || canary === undefined) throw new Error("two workers");
    ports = { open: await freePort(), guarded: await freePort() };
    const resources = `${poolYaml("stable", "team", [stable])}${poolYaml("canary", "team", [canary])}---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: open, namespace: team }
spec: { gatewayClassName: kinference, listeners: [{ name: http, port: ${ports.open}, protocol: HTTP }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: guarded, namespace: team }
spec: { gatewayClassName: kinference, listeners: [{ name: http, port: ${ports.guarded}, protocol: HTTP }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: main, namespace: team }
spec:
  parentRefs: [{ name: open }, { name: guarded }]
  rules:
  - backendRefs: [{ kind: InferencePool, name: stable }]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: beta, namespace: team }
spec:
  parentRefs: [{ name: open }]
  rules:
  - matches: [{ path: { type: PathPrefix, value: / }, headers: [{ name: X-Beta, value: "yes" }] }]
    backendRefs: [{ kind: InferencePool, name: canary }]
---
apiVersion: kinference.buoyant.io/v1alpha1
kind: InferencePolicy
metadata: { name: no-beta-tools, namespace: team }
spec:
  targetRefs: [{ kind: HTTPRoute, name: beta }]
  rules: [{ name: no-tools, matches: [{ tools: true }], reject: { status: 422, code: no_tools, message: no tools in the beta } }]
`;
    stack = await startStack(version, { file: [resourceFile(resources)] });
  });
  afterAll(async () => {
    await stack?.stop();
    for (const { worker } of workers) await worker.close();
  });

  const urlOf = (port: number) => `http://127.0.0.1:${port}`;
  const ask = (port: number, headers: Record<string, string> = {}, more: object = {}) =>
    post(
      `${urlOf(port)}/v1/chat/completions`,
      { model: "m", max_tokens: 2, messages: [{ role: "user", content: "hi" }], ...more },
      headers,
    );

  test("each route reaches the workers of its own pools", async () => {
    for (const port of [ports.open, ports.guarded])
      expect((await chat(urlOf(port), "hi")).headers.get("x-kinference-worker")).toBe("stable-0");
    expect((await ask(ports.open, { "x-beta": "yes" })).headers.get("x-kinference-worker")).toBe("canary-0");
    expect((await ask(ports.guarded, { "x-beta": "yes" })).headers.get("x-kinference-worker")).toBe("stable-0");
    expect((await chat(urlOf(ports.open), "hi", { model: "canary-only" })).status).toBe(404);
    expect((await ask(ports.open, { "x-beta": "yes" }, { model: "canary-only" })).status).toBe(200);
  });

  test("models are those of the route, and a policy holds on the route that it names", async () => {
    const models = async (headers: Record<string, string>) =>
      (
        (await (await fetch(`${urlOf(ports.open)}/v1/models`, { headers })).json()) as { data: { id: string }[] }
      ).data.map((m) => m.id);
    expect(await models({})).toEqual(["m"]);
    expect(await models({ "x-beta": "yes" })).toEqual(["canary-only", "m"]);
    const tools = { tools: [{ type: "function", function: { name: "f" } }] };
    expect((await ask(ports.open, {}, tools)).status).toBe(200);
    const refused = await ask(ports.open, { "x-beta": "yes" }, tools);
    expect([refused.status, refused.json]).toEqual([
      422,
      { error: { message: "no tools in the beta", type: "invalid_request_error", param: null, code: "no_tools" } },
    ]);
  });
});
