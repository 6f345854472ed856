import { Fleet } from "../../src/handler/fleet.ts";
import { DEFAULT_MONITOR } from "../../src/workers/worker-monitor.ts";

/** So many workers of a pool, which nobody watches: they are as a test makes them. */
export async function stillFleet(workers: number, pool: string, now: () => number): Promise<Fleet> {
  const fleet = new Fleet(
    async () => ({ status: 500, body: "" }),
    now,
    DEFAULT_MONITOR,
    () => {},
  );
  const addresses = Array.from({ length: workers }, (_, i) => `10.0.0.${i + 1}:8000`);
  await fleet.replace(addresses.map((address, i) => ({ address, name: `w${i + 1}`, pool })));
  fleet.stop();
  return fleet;
}
