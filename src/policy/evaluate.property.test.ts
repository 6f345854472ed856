import fc from "fast-check";
import { expect, test } from "vitest";
import { naiveOutcome } from "../../test/support/naive-policy.ts";
import { world } from "../../test/support/policy-generators.ts";
import { compiledOutcome } from "../../test/support/policy-world.ts";

test("agrees with the document, read literally", { timeout: 600_000 }, () => {
  fc.assert(
    fc.property(world, (w) => {
      expect(compiledOutcome(w)).toBe(naiveOutcome(w));
    }),
    { numRuns: 100_000 },
  );
});
