import type { Static } from "typebox";
import { LIMIT_TOKENS } from "./inference-policy.ts";
import type { Resource } from "./resource.ts";
import { closed, duration, integer, list, oneOf, optional, quantity, text } from "./schema.ts";

const tenantLimit = closed({
  tokens: oneOf(LIMIT_TOKENS, "What is counted: tokens, or with `Cost` US dollars."),
  quantity: quantity("How much each window allows."),
  window: duration("Its length. Windows begin at multiples of it since 1970, in UTC."),
});

export const inferenceTenantSpec = closed({
  apiKeyHashesRef: optional(
    closed(
      { name: text("The Secret's name.") },
      { description: "A Secret whose values are SHA-256 digests (hex) of the tenant's API keys." },
    ),
  ),
  jwtClaim: optional(
    closed(
      { name: text("The claim."), value: text("Its value.") },
      { description: "A claim of a token that Envoy has verified (its `jwt_authn` filter)." },
    ),
  ),
  header: optional(
    closed(
      { name: text("The header."), value: text("Its value.") },
      {
        description:
          "A header set by a gateway in front. Believed only if the handler is told to trust that header (`--trust-header`).",
      },
    ),
  ),
  priority: optional(integer("For readers, and for queues where they are configured.", { default: 0 })),
  limits: optional(
    list(tenantLimit, {
      description: "What the tenant may use in all, whichever rule decides. Beyond: 429.",
      minItems: 1,
      maxItems: 16,
    }),
  ),
});
export type InferenceTenantSpec = Static<typeof inferenceTenantSpec>;

/** Who a tenant is. A request that no tenant claims belongs to `default`. */
export type InferenceTenant = Resource<"InferenceTenant", InferenceTenantSpec>;
