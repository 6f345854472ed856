import type { Static } from "typebox";
import { price } from "./inference-provider.ts";
import type { Resource } from "./resource.ts";
import { closed, list, optional, quantity, text, texts } from "./schema.ts";

export const inferenceModelSpec = closed({
  modelName: optional(text("The name by which it is served. Absent: the object's name.")),
  family: optional(text("Models of one family: clients may ask for `FAMILY/*`.")),
  parameters: optional(text("Its size, for readers: `27B`.")),
  quantization: optional(text("For readers: `fp8`.")),
  contextLength: optional(quantity("Tokens that prompt and output may have together; for readers and `/v1/models`.")),
  capabilities: optional(
    texts("What it is good for: clients may ask for `class/CAPABILITY`, rules for `capability`.", 32),
  ),
  tier: optional(text("Clients may ask for `class/TIER` too.")),
  price: optional(price),
  aliases: optional(
    list(text("Another name."), { description: "Further names by which clients may ask for it.", minItems: 1 }),
  ),
});
export type InferenceModelSpec = Static<typeof inferenceModelSpec>;

/** A catalogue entry for a model name. Optional: a model that workers serve is known without one. */
export type InferenceModel = Resource<"InferenceModel", InferenceModelSpec>;
