import { expect, test } from "vitest";
import { warmUp } from "./warm-up.ts";

test("ends, and leaves no server behind", async () => {
  const servers = () => process.getActiveResourcesInfo().filter((resource) => resource === "TCPServerWrap").length;
  const before = servers();
  await warmUp(50);
  expect(servers()).toBe(before);
});
