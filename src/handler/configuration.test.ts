import { describe, expect, test } from "vitest";
import type { InferencePolicy } from "../api/inference-policy.ts";
import { buildSnapshot } from "../resources/snapshot.ts";
import { compileConfiguration, configurationProblems } from "./configuration.ts";

const policy = (name: string, namespace: string, more: Partial<InferencePolicy["spec"]> = {}): InferencePolicy => ({
  apiVersion: "kinference.buoyant.io/v1alpha1",
  kind: "InferencePolicy",
  metadata: { name, namespace },
  spec: { rules: [{ name: "r", reject: { message: "no" } }], ...more },
});
const route = (name: string, namespace: string, gateway: string, gatewayNamespace?: string) => ({
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "HTTPRoute",
  metadata: { name, namespace },
  spec: {
    parentRefs: [{ name: gateway, ...(gatewayNamespace === undefined ? {} : { namespace: gatewayNamespace }) }],
    rules: [{ backendRefs: [{ kind: "InferencePool", name: "pool" }] }],
  },
});

test("a tag that nothing computes is a mistake, with its place", () => {
  const rules = [
    { name: "a", matches: [{ tag: "pii-detectd" }], route: {} },
    {
      name: "b",
      route: {
        exclude: [{ if: { anyTag: ["pii-card", "nonsense"] }, drop: { backend: { type: "Provider" as const } } }],
      },
    },
  ];
  const problems = configurationProblems(buildSnapshot([policy("p", "n", { rules })]));
  expect(problems.map(({ problem }) => problem)).toEqual([
    {
      path: ["spec", "rules", 0, "matches", 0, "tag"],
      message: "unknown tag `pii-detectd`, did you mean `pii-detected`?",
    },
    { path: ["spec", "rules", 1, "route", "exclude", 0, "if", "anyTag", 1], message: "unknown tag `nonsense`" },
  ]);
});

describe("which policies apply to a route", () => {
  const configuration = compileConfiguration(
    buildSnapshot([
      policy("all", "team"),
      policy("other-namespace", "other"),
      policy("this-route", "team", { targetRefs: [{ kind: "HTTPRoute", name: "chat" }] }),
      policy("this-gateway", "team", { targetRefs: [{ kind: "Gateway", name: "public" }] }),
      policy("another-route", "team", { targetRefs: [{ kind: "HTTPRoute", name: "batch" }] }),
      policy("its-own-gateway", "infra", { targetRefs: [{ kind: "Gateway", name: "public" }] }),
      route("chat", "team", "public"),
      route("far", "team", "public", "infra"),
    ]),
  );
  const rulesOf = (name: string) => configuration.scopes.get(name)?.rules.map((rule) => rule.name.replace("/r", ""));

  test("those of its namespace without targets, and those that name it or its gateway", () => {
    expect(rulesOf("team/chat")).toEqual(["all", "this-gateway", "this-route"]);
    expect(configuration.scopes.get("team/chat")?.pools).toEqual(new Set(["team/pool"]));
  });

  test("a Gateway's own policies apply to routes of other namespaces that hang on it", () => {
    expect(rulesOf("team/far")).toEqual(["its-own-gateway", "all"]);
  });

  test("a request of no known route meets every policy without targets: no guard is lost with a name", () => {
    expect(rulesOf("")).toEqual(["other-namespace", "all"]);
  });
});
