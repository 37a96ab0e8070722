// Vectors through the `ollama` package and the AI SDK; what they got goes to standard output as JSON.
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embed, embedMany } from "ai";
import { Ollama } from "ollama";

const [host, name] = process.argv.slice(2);
const baseURL = `${host}/v1`;
const values = ["Hello", "Good day", "Hello"];
const client = new Ollama({ host });
const found = {
  ollama: await client.embed({ model: name, input: values }),
  older: await client.embeddings({ model: name, prompt: values[0] }),
};
const models = {
  openai: createOpenAI({ baseURL, apiKey: "none" }).embedding(name),
  compatible: createOpenAICompatible({ name: "llmd", baseURL }).embeddingModel(name),
};
for (const [kind, model] of Object.entries(models)) {
  const one = await embed({ model, value: values[0], maxRetries: 0 });
  const many = await embedMany({ model, values, maxRetries: 0 });
  found[kind] = { one: one.embedding, many: many.embeddings, usage: many.usage };
}
console.log(JSON.stringify(found));
