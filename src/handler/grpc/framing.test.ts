import fc from "fast-check";
import { expect, test } from "vitest";
import { FrameReader, frame } from "./framing.ts";

test("messages come out as they went in, wherever the bytes are cut", () => {
  const messages = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 20 });
  fc.assert(
    fc.property(messages, fc.array(fc.nat(6000), { maxLength: 30 }), (sent, cuts) => {
      const bytes = frame(sent);
      const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length];
      const reader = new FrameReader(1000);
      const received: Uint8Array[] = [];
      for (let i = 1; i < places.length; i++) {
        expect(
          reader.push(bytes.subarray(places[i - 1], places[i]), (message) => received.push(new Uint8Array(message))),
        ).toBeUndefined();
      }
      expect(received).toEqual(sent);
    }),
  );
});

test("a message above the limit and a compressed one end the stream with a reason", () => {
  expect(new FrameReader(10).push(frame([new Uint8Array(11)]), () => {})).toContain("larger than 10");
  expect(new FrameReader(10).push(Buffer.from([1, 0, 0, 0, 0]), () => {})).toContain("compressed");
});
