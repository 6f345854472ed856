/** Prompts as the simulator's own chat template renders them (ChatML, as Qwen's). */
export interface SimulatedMessage {
  role: string;
  content: string;
}

export function renderChat(messages: readonly SimulatedMessage[], tools: unknown): string {
  const system = tools === undefined ? "" : `<|im_start|>system\n# Tools\n${JSON.stringify(tools)}<|im_end|>\n`;
  return `${system}${messages.map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`).join("")}<|im_start|>assistant\n`;
}

/** Content of any API as text: strings as they are, parts by their text, images by their source. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? "" : JSON.stringify(content);
  return content.map((part) => (typeof part?.text === "string" ? part.text : JSON.stringify(part))).join("");
}

/** Messages of OpenAI chat, Responses input or Anthropic messages. Undefined if they are none of these. */
export function readMessages(list: unknown): SimulatedMessage[] | undefined {
  if (!Array.isArray(list)) return undefined;
  const messages: SimulatedMessage[] = [];
  for (const entry of list as { role?: unknown; content?: unknown }[]) {
    if (typeof entry?.role !== "string") return undefined;
    messages.push({ role: entry.role, content: contentText(entry.content) });
  }
  return messages;
}
