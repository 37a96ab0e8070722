// The `ollama` package over every route; what it got goes to standard output as JSON.
import { Ollama } from "ollama";

const [host, model] = process.argv.slice(2);
const client = new Ollama({ host });
const messages = [{ role: "user", content: "Hello" }];
const options = { temperature: 0, num_predict: 8 };
const found = {};

async function all(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

async function failure(promise) {
  try {
    await promise;
    return null;
  } catch (error) {
    return { name: error.name, status: error.status_code, error: error.error ?? error.message };
  }
}

found.version = await client.version();
found.list = await client.list();
found.show = await client.show({ model });
found.chat = await client.chat({ model, messages, options, logprobs: true, top_logprobs: 1 });
found.chatParts = await all(await client.chat({ model, messages, options, stream: true }));
found.generate = await client.generate({ model, prompt: "Hello", options });
found.generateParts = await all(await client.generate({ model, prompt: "Hello", options, stream: true }));
found.schema = await client.chat({
  model,
  messages,
  options: { temperature: 1, seed: 1, num_predict: 60 },
  format: { type: "object", properties: { city: { enum: ["Oslo", "Rome"] } }, required: ["city"], additionalProperties: false },
});
found.ps = await client.ps();
found.created = await all(await client.create({ model: "mario", from: model, system: "Be Mario.", stream: true }));
found.copied = await client.copy({ source: "mario", destination: "luigi" });
found.named = (await client.list()).models.map((entry) => entry.name).sort();
found.deleted = [await client.delete({ model: "mario" }), await client.delete({ model: "luigi" })];
found.missing = await failure(client.show({ model: "nobody" }));
found.tooLong = await failure(client.generate({ model, prompt: "x".repeat(5000) }));
found.embed = await failure(client.embed({ model, input: "Hello" }));

const long = await client.generate({ model, prompt: "Hello", options: { num_predict: 400, temperature: 0 }, stream: true });
found.aborted = await failure(
  (async () => {
    for await (const _ of long) long.abort();
  })(),
);
console.log(JSON.stringify(found));
