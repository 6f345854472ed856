import fc from "fast-check";
import { expect, test } from "vitest";
import { verdict, world } from "../../test/support/policy-generators.ts";
import { compiledOutcome, policyOf } from "../../test/support/policy-world.ts";

test("whatever else is declared, a guard that comes first lets no marked prompt out", { timeout: 600_000 }, () => {
  const guard = policyOf(
    [
      {
        name: "inside",
        route: {
          exclude: [{ if: { tag: "pii-detected" }, drop: { backend: { type: "Provider" } } }],
          select: [
            { type: "Provider", order: ["p0", "p1"] },
            { type: "Local", minimize: "PredictedTTFT" },
          ],
        },
      },
    ],
    "a-guard",
    { priority: 100 },
  );
  fc.assert(
    fc.property(world, verdict, (w, marked) => {
      if (marked === false) return;
      const tags = { ...w.request.tags, "pii-detected": marked };
      const guarded = { ...w, policies: [...w.policies, guard], request: { ...w.request, tags } };
      expect(compiledOutcome(guarded)).not.toMatch(/@p\d/);
    }),
    { numRuns: 100_000 },
  );
});
