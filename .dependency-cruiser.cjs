// The direction of imports: api <- leaf parts <- handler | gateway <- cli. Leaf parts do not know each other.
const leaves = "kvcache|latency|tenancy|classify|protocols|workers";
module.exports = {
  forbidden: [
    { name: "no-circular", severity: "error", from: {}, to: { circular: true } },
    {
      name: "api-imports-nothing-of-ours",
      severity: "error",
      from: { path: "^src/api/" },
      to: { path: "^src/(?!api/)" },
    },
    {
      name: "leaf-parts-import-only-api",
      comment: "A leaf part runs under a simulated clock: it knows nothing of its siblings, of Envoy or of Kubernetes.",
      severity: "error",
      from: { path: `^src/(${leaves}|policy)/` },
      to: { path: "^src/", pathNot: "^src/(api|$1)/" },
    },
    {
      name: "leaf-parts-do-no-io",
      severity: "error",
      from: { path: "^src/(policy|kvcache|latency|tenancy|classify|protocols|providers)/", pathNot: "[.]test[.]ts$" },
      to: { path: "^(node:)?(net|http|http2|https|fs|child_process)$|undici|pino|opentelemetry|protobufjs" },
    },
    {
      name: "providers-import-only-api-and-workers",
      comment: "A provider's error rate is measured as a worker's is.",
      severity: "error",
      from: { path: "^src/providers/" },
      to: { path: "^src/", pathNot: "^src/(api|workers|providers)/" },
    },
    {
      name: "resources-import-only-api",
      severity: "error",
      from: { path: "^src/resources/" },
      to: { path: "^src/", pathNot: "^src/(api|resources)/" },
    },
    {
      name: "telemetry-imports-no-front",
      severity: "error",
      from: { path: "^src/telemetry/" },
      to: { path: "^src/(handler|gateway|cli|simulator)/" },
    },
    {
      name: "gateway-knows-no-handler",
      severity: "error",
      from: { path: "^src/gateway/" },
      to: { path: "^src/(handler|cli|simulator|kvcache|latency|policy)/" },
    },
    {
      name: "handler-knows-no-gateway",
      severity: "error",
      from: { path: "^src/handler/" },
      to: { path: "^src/(gateway|cli|simulator)/" },
    },
    {
      name: "analysis-decides-nothing",
      comment: "What people ask about policies: it may read the parts, the request path must not need it.",
      severity: "error",
      from: { path: "^src/(?!analysis/|cli/)" },
      to: { path: "^src/analysis/" },
    },
    {
      name: "analysis-starts-nothing",
      severity: "error",
      from: { path: "^src/analysis/" },
      to: { path: "^src/(gateway|cli|simulator|workers|kvcache|latency)/" },
    },
    {
      name: "simulator-stands-alone",
      severity: "error",
      from: { path: "^src/simulator/" },
      to: { path: "^src/(?!simulator/)" },
    },
    { name: "only-cli-composes", severity: "error", from: { path: "^src/(?!cli/)" }, to: { path: "^src/cli/" } },
    {
      name: "src-needs-no-tests",
      severity: "error",
      from: { path: "^src/", pathNot: "[.]test[.]ts$" },
      to: { path: "^(test|demo|benchmarks)/|[.]test[.]ts$" },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { extensions: [".ts", ".js", ".json"] },
  },
};
