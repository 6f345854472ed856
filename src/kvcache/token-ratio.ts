const INITIAL_CHARACTERS_PER_TOKEN = 4;
const WEIGHT_LIMIT = 20_000;

/** How many characters a token of one model has, learned from what workers report; recent text counts most. */
export class TokenRatio {
  #characters = INITIAL_CHARACTERS_PER_TOKEN * 50;
  #tokens = 50;

  get charactersPerToken(): number {
    return this.#characters / this.#tokens;
  }

  /** One finished request: its rendered characters and the prompt tokens that the worker counted for them. */
  learn(characters: number, promptTokens: number): void {
    if (characters < 40 || promptTokens < 4) return;
    this.#characters += characters;
    this.#tokens += promptTokens;
    if (this.#tokens > WEIGHT_LIMIT) {
      const keep = WEIGHT_LIMIT / 2 / this.#tokens;
      this.#characters *= keep;
      this.#tokens *= keep;
    }
  }
}
