import type { Static } from "typebox";
import { BACKEND_TYPES, backendMatch, candidateMatch, modelSelector, requestMatch } from "./request-match.ts";
import type { Resource } from "./resource.ts";
import { closed, duration, integer, list, number, oneOf, optional, quantity, text, texts } from "./schema.ts";
import { tagDefinition } from "./tag-definition.ts";

export const KINFERENCE_API = "kinference.buoyant.io/v1alpha1";

export const MINIMIZE_BY = [
  "PredictedTTFT",
  "PredictedE2E",
  "QueuedPrompts",
  "RunningPrompts",
  "KVCacheUsage",
  "ErrorRate",
  "Cost",
] as const;
export const MAXIMIZE_BY = ["CachedTokens"] as const;

const candidateSource = closed({
  models: modelSelector,
  backend: optional(backendMatch),
});
export type CandidateSource = Static<typeof candidateSource>;

const exclusion = closed({
  name: optional(text("What decisions call it.")),
  if: optional(requestMatch),
  drop: candidateMatch,
});

const selectStage = closed(
  {
    type: optional(oneOf(BACKEND_TYPES, "Keeps only these backends. Absent: all.")),
    minimize: optional(oneOf(MINIMIZE_BY, "Ranks by this, least first.")),
    maximize: optional(oneOf(MAXIMIZE_BY, "Ranks by this, most first.")),
    order: optional(texts("Only those named, in this order: providers, workers or models.")),
  },
  {
    description: "Keeps the candidates of its type and ranks them.",
    minProperties: 1,
    rules: [
      {
        rule: "!(has(self.minimize) && has(self.maximize))",
        message: "a stage ranks by one of minimize and maximize",
      },
    ],
  },
);
export type SelectStage = Static<typeof selectStage>;

const shadow = closed(
  {
    model: text("The model that gets the copy."),
    percent: optional(
      number("Share of the rule's requests that are copied, 0 to 100.", { minimum: 0, maximum: 100, default: 100 }),
    ),
  },
  {
    description:
      "Sends a copy to a local worker that serves another model and throws the answer away. A copy never leaves the cluster, never queues and never delays the request.",
  },
);

const routeAction = closed(
  {
    consider: optional(
      list(candidateSource, {
        description:
          "The models and backends that may serve the request, all entries together. Absent: the model asked for, wherever it is.",
        minItems: 1,
        maxItems: 32,
      }),
    ),
    exclude: optional(
      list(exclusion, {
        description:
          "Each entry drops the candidates for which all of `drop` holds, where `if` holds (absent: always).",
        maxItems: 32,
      }),
    ),
    select: optional(
      list(selectStage, {
        description:
          "Stages in order: the first with a candidate wins, the rest are fallbacks. Absent: local workers by PredictedTTFT; nothing leaves the cluster.",
        minItems: 1,
        maxItems: 16,
      }),
    ),
    onEmpty: optional(oneOf(["Reject", "NextRule"], "What happens when no candidate is left.", "Reject")),
    shadow: optional(shadow),
  },
  { description: "Where the request goes." },
);
export type RouteAction = Static<typeof routeAction>;

const rejectAction = closed(
  {
    status: optional(integer("HTTP status.", { minimum: 400, maximum: 599, default: 403 })),
    code: optional(text("Machine-readable reason.", { default: "refused_by_policy" })),
    message: text("What the client is told.", { maxLength: 1024 }),
  },
  { description: "Ends the request with an error in the shape of the client's API." },
);
export type RejectAction = Static<typeof rejectAction>;

export const LIMIT_TOKENS = ["Input", "Output", "Total", "Cost"] as const;
const limitAction = closed(
  {
    per: oneOf(["Tenant", "Model", "Header"], "Each of these has a counter of its own."),
    header: optional(text("The header whose values have counters, with `per: Header`.")),
    tokens: oneOf(LIMIT_TOKENS, "What is counted: tokens, or with `Cost` US dollars."),
    quantity: quantity("How much each window allows. With `Cost`: US dollars, a decimal number as text."),
    window: duration("Its length. Windows begin at multiples of it since 1970, in UTC."),
    onExceed: optional(
      oneOf(["Reject", "NextRule"], "`Reject`: 429. `NextRule`: as if the rule did not match.", "Reject"),
    ),
  },
  {
    description:
      "Charges a budget. Admitted on an estimate (prompt tokens, capped output), settled by what was used, refunded when the request failed.",
    rules: [
      { rule: "self.per != 'Header' || has(self.header)", message: "per: Header needs `header`, the header's name" },
    ],
  },
);
export type LimitAction = Static<typeof limitAction>;

const policyRule = closed(
  {
    name: text("Unique within the policy; decisions and metrics say `policy/rule`.", { maxLength: 63 }),
    matches: optional(
      list(requestMatch, {
        description: "Alternatives, one of which must hold. Absent: always.",
        minItems: 1,
        maxItems: 32,
      }),
    ),
    limit: optional(limitAction),
    route: optional(routeAction),
    reject: optional(rejectAction),
  },
  {
    description:
      "Routes or rejects the requests that it matches. With `limit` alone it only charges, and the next rule decides.",
    rules: [
      {
        rule: "!(has(self.route) && has(self.reject))",
        message: "a rule has one of `route` and `reject`, not both",
      },
      {
        rule: "has(self.route) || has(self.reject) || has(self.limit)",
        message: "a rule needs `route`, `reject` or `limit`",
      },
      {
        rule: "!(has(self.limit) && has(self.reject))",
        message: "a rule that rejects has no use for a `limit`",
      },
    ],
  },
);
export type PolicyRule = Static<typeof policyRule>;

const targetRef = closed(
  {
    group: optional(text("Its API group.", { default: "gateway.networking.k8s.io", minLength: 0 })),
    kind: oneOf(["Gateway", "HTTPRoute"], "Its kind."),
    name: text("Its name; it is in the policy's namespace."),
  },
  { description: "Where a policy applies." },
);
export type TargetRef = Static<typeof targetRef>;

export const inferencePolicySpec = closed({
  priority: optional(integer("Policies of higher priority are tried first.", { default: 0 })),
  targetRefs: optional(
    list(targetRef, {
      description: "Gateways or HTTPRoutes of the same namespace. Absent: every route of the namespace.",
      maxItems: 16,
    }),
  ),
  tags: optional(
    list(tagDefinition, { description: "Tags of your own, for the rules of this policy.", maxItems: 32, key: "name" }),
  ),
  rules: list(policyRule, {
    description: "Tried in order: the first that holds decides.",
    minItems: 1,
    maxItems: 256,
    key: "name",
  }),
});
export type InferencePolicySpec = Static<typeof inferencePolicySpec>;

/** Rules that say which requests go where, or are refused. Meaning: docs/policies.md. */
export type InferencePolicy = Resource<"InferencePolicy", InferencePolicySpec>;
