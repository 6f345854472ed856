/** The answer to `GET /v1/models` (OpenAI's shape, which vLLM shares): each model once, in name order. */
export function modelsListBody(models: readonly { id: string; ownedBy: string; maxModelLen?: number }[]): string {
  const byId = new Map(models.map((model) => [model.id, model]));
  const data = [...byId.values()]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map((model) => ({
      id: model.id,
      object: "model",
      created: 0,
      owned_by: model.ownedBy,
      ...(model.maxModelLen === undefined ? {} : { max_model_len: model.maxModelLen }),
    }));
  return JSON.stringify({ object: "list", data });
}
