import fc from "fast-check";
import { expect, test } from "vitest";
import { BlockIndex } from "./block-index.ts";

/** The same, written without any regard for speed: a list of links in order of being freed, and pins. */
class NaiveIndex {
  readonly capacity: number;
  readonly pins = new Map<number, number>();
  queue: number[] = [];

  constructor(capacity: number) {
    this.capacity = capacity;
  }
  has(link: number): boolean {
    return this.pins.has(link) || this.queue.includes(link);
  }
  pin(link: number): boolean {
    if (!this.has(link))
      while (this.pins.size + this.queue.length + 1 > this.capacity) if (this.queue.shift() === undefined) return false;
    this.queue = this.queue.filter((other) => other !== link);
    this.pins.set(link, (this.pins.get(link) ?? 0) + 1);
    return true;
  }
  unpin(link: number): void {
    const pins = this.pins.get(link) ?? 0;
    if (pins === 0) return;
    if (pins > 1) this.pins.set(link, pins - 1);
    else {
      this.pins.delete(link);
      this.queue.push(link);
    }
  }
  remove(link: number): void {
    if (!this.pins.has(link)) this.queue = this.queue.filter((other) => other !== link);
  }
}

const LINKS = 40;
// Few distinct low halves, so that the table has collisions to resolve.
const halves = (link: number): [number, number] => [link * 7919, (link % 5) * 8];

test("behaves as the naive index under any sequence of operations, collisions and growth included", () => {
  const operation = fc.tuple(fc.constantFrom("pin", "unpin", "remove"), fc.nat(LINKS - 1));
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 30 }), fc.array(operation, { maxLength: 300 }), (capacity, operations) => {
      const index = new BlockIndex(capacity * 16, 4);
      const naive = new NaiveIndex(capacity);
      for (const [kind, link] of operations) {
        const [high, low] = halves(link);
        if (kind === "pin") expect(index.pin(high, low, 16)).toBe(naive.pin(link));
        else if (kind === "unpin") {
          index.unpin(high, low);
          naive.unpin(link);
        } else {
          index.removeIfUnpinned(high, low);
          naive.remove(link);
        }
        for (let other = 0; other < LINKS; other++)
          expect(index.find(...halves(other)) >= 0, `${kind} ${link}: link ${other}`).toBe(naive.has(other));
      }
      expect(index.linkCount).toBe(naive.pins.size + naive.queue.length);
      expect(index.usedTokens).toBe(16 * index.linkCount);
    }),
    { numRuns: 300 },
  );
});

test("a smaller capacity evicts what was freed longest ago", () => {
  const index = new BlockIndex(160);
  for (let link = 0; link < 10; link++) {
    index.pin(link, link, 16);
    index.unpin(link, link);
  }
  index.setCapacity(48);
  expect([...Array(10).keys()].filter((link) => index.find(link, link) >= 0)).toEqual([7, 8, 9]);
});
