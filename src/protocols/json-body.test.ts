import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseJsonBody, withModel } from "./json-body.ts";

const parse = (text: string) => parseJsonBody(Buffer.from(text));

describe("a body is read one way or refused", () => {
  test.each([
    ['{"model":"a","model":"b"}'],
    ['{"model":"a","mod\\u0065l":"b"}'],
    ['{"messages":[{"role":"user","content":"secret","content":"hi"}]}'],
    ['{"a":{"b":[1,{"c":1,"d":2,"c":3}]}}'],
    ['{"__proto__":1,"__proto__":2}'],
  ])("the same key twice: %s", (text) => {
    const result = parse(text);
    expect(result).toMatchObject({
      ok: false,
      error: { status: 400, message: expect.stringContaining("same key twice") },
    });
  });

  test.each([["{"], [""], ["[]"], ["null"], ['"x"'], ['{"a":1}x'], ["\ufeff{}"], ['{"a":01}']])(
    "not an object in JSON: %s",
    (text) => {
      expect(parse(text)).toMatchObject({ ok: false, error: { status: 400 } });
    },
  );

  test("not UTF-8", () => {
    expect(parseJsonBody(Buffer.from('{"a":"\xff"}', "latin1"))).toMatchObject({ ok: false, error: { status: 400 } });
    expect(parseJsonBody(Buffer.from('{"a":1}', "utf16le"))).toMatchObject({ ok: false, error: { status: 400 } });
  });

  test("nested too deeply, without hanging or crashing", () => {
    expect(parse(`{"a":${"[".repeat(300)}${"]".repeat(300)}}`)).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining("nested") },
    });
    expect(parse(`{"a":${"[".repeat(100_000)}`)).toMatchObject({ ok: false });
  });

  test("any object is read as JSON.parse reads it, however it is spaced and escaped", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 4 })),
        fc.constantFrom(undefined, 1, "\t"),
        (object, space) => {
          const text = JSON.stringify(object, null, space);
          expect(parse(text)).toMatchObject({ ok: true, value: { value: JSON.parse(text) } });
        },
      ),
    );
  });
});

test("only the model changes: every other byte stays", () => {
  const text =
    '{ "x":"model", "messages":[{"model":"inner"}],\n "model" : "a\\"b" , "n": 1e400, "big":12345678901234567890 }';
  const body = parse(text);
  if (!body.ok) throw new Error(body.error.message);
  expect(withModel(body.value, 'new"name').toString()).toBe(text.replace('"a\\"b"', '"new\\"name"'));
});

test("the model is found wherever it stands", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
      fc.string(),
      fc.string(),
      (rest, before, after) => {
        const text = JSON.stringify({ ...rest, model: before });
        const body = parse(text);
        if (!body.ok) throw new Error(body.error.message);
        expect(JSON.parse(withModel(body.value, after).toString())).toEqual({ ...JSON.parse(text), model: after });
      },
    ),
  );
});
