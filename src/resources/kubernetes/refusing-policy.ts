import { type InferencePolicy, KINFERENCE_API, type TargetRef } from "../../api/inference-policy.ts";
import { namespaceOf, type Resource } from "../../api/resource.ts";

/** Above every priority that a policy can have. */
const BEFORE_ALL_OTHERS = Number.MAX_SAFE_INTEGER;

/**
 * What stands in for a policy that was in force and of which no version can be used: nobody knows what it guarded, so
 * nothing may pass. It binds the whole namespace, since where the broken one applied is as doubtful as the rest, and
 * every Gateway that it names, whose routes may be in other namespaces.
 */
export function refusingPolicies(broken: Resource): InferencePolicy[] {
  const gateways = gatewaysOf(broken.spec);
  return [refusing(broken, undefined), ...(gateways.length === 0 ? [] : [refusing(broken, gateways)])];
}

function refusing({ metadata }: Resource, targetRefs: TargetRef[] | undefined): InferencePolicy {
  const { name } = metadata;
  const message = `The policy ${name} is invalid and no earlier version of it is known: requests are refused until it is mended.`;
  return {
    apiVersion: KINFERENCE_API,
    kind: "InferencePolicy",
    metadata: { name, namespace: namespaceOf({ metadata }) },
    spec: {
      priority: BEFORE_ALL_OTHERS,
      ...(targetRefs === undefined ? {} : { targetRefs }),
      rules: [{ name: "invalid", reject: { status: 503, code: "policy_invalid", message } }],
    },
  };
}

/** As far as the broken one can be read. */
function gatewaysOf(spec: unknown): TargetRef[] {
  const { targetRefs } = (spec ?? {}) as { targetRefs?: unknown };
  if (!Array.isArray(targetRefs)) return [];
  return targetRefs.flatMap((ref: { kind?: unknown; name?: unknown } | null) =>
    ref?.kind === "Gateway" && typeof ref.name === "string" ? [{ kind: ref.kind, name: ref.name }] : [],
  );
}
