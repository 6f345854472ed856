import type { Static } from "typebox";
import { closed, duration, integer, list, number, oneOf, optional, text, texts } from "./schema.ts";

const prompts = (description: string) =>
  list(text("", { maxLength: 4000 }), { description, minItems: 3, maxItems: 256 });

const http = closed(
  {
    url: text("Where the text is POSTed, as `{text}`; the answer is `{score}` (0 to 1) or `{match}`.", {
      pattern: "^https?://[^/]+",
      maxLength: 1024,
    }),
    timeout: optional({ ...duration("How long to wait."), default: "100ms" }),
    atLeast: optional(number("The score from which on the tag holds.", { minimum: 0, maximum: 1, default: 0.5 })),
    cacheSeconds: optional(integer("How long an answer is kept for the same text.", { minimum: 0, default: 60 })),
  },
  { description: "A classifier of your own. When it fails or is late, the tag cannot be told." },
);

const similar = closed(
  {
    examples: prompts("Prompts that deserve the tag."),
    counterExamples: prompts("Prompts that do not, some of them close calls."),
  },
  {
    description:
      "Compares the words and character sequences of the text with the examples; the threshold is fitted to them, each left out once.",
  },
);

export const tagDefinition = closed(
  {
    name: text("What rules call it.", { pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", maxLength: 63 }),
    input: optional(oneOf(["lastUser", "everything"], "The text that is looked at.", "lastUser")),
    keywords: optional(texts("Words or phrases, any of which gives the tag; whole words, upper or lower case.", 512)),
    pattern: optional(
      text("A regular expression (RE2 syntax, so that no text makes it slow) that gives the tag.", { maxLength: 1024 }),
    ),
    similar: optional(similar),
    http: optional(http),
  },
  {
    description: "A tag of your own; any of the ways given can give it. Replaces a built-in tag of the same name.",
    rules: [
      {
        rule: "has(self.keywords) || has(self.pattern) || has(self.similar) || has(self.http)",
        message: "a tag needs one of keywords, pattern, similar and http",
      },
    ],
  },
);
export type TagDefinition = Static<typeof tagDefinition>;
