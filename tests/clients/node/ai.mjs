// The AI SDK through three of its providers: chat completions, responses and Anthropic's messages.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, Output, streamText, tool } from "ai";

const [url, name] = process.argv.slice(2);
const baseURL = `${url}/v1`;
const providers = {
  compatible: createOpenAICompatible({ name: "llmd", baseURL, includeUsage: true, supportsStructuredOutputs: true })(name),
  responses: createOpenAI({ baseURL, apiKey: "none" }).responses(name),
  anthropic: createAnthropic({ baseURL, apiKey: "none" })(name),
};
const tools = {
  weather: tool({
    description: "The weather of a city",
    inputSchema: jsonSchema({
      type: "object",
      properties: { city: { enum: ["Oslo", "Rome"] } },
      required: ["city"],
      additionalProperties: false,
    }),
  }),
};
const city = jsonSchema({
  type: "object",
  properties: { city: { type: "string", enum: ["Oslo", "Rome"] } },
  required: ["city"],
  additionalProperties: false,
});

// A model with random weights would go on calling up to its limit.
const oneCall = {
  llmd: { parallel_tool_calls: false },
  openai: { parallelToolCalls: false },
  anthropic: { disableParallelToolUse: true },
};

async function tried(model) {
  const asked = { model, prompt: "Hello", temperature: 0, maxOutputTokens: 8, maxRetries: 0 };
  const whole = await generateText(asked);
  const streamed = streamText(asked);
  const parts = [];
  let text = "";
  for await (const part of streamed.fullStream) {
    parts.push(part.type);
    if (part.type === "text-delta") text += part.text;
  }
  const called = await generateText({ ...asked, tools, toolChoice: "required", maxOutputTokens: 200, providerOptions: oneCall });
  const bound = await generateText({ ...asked, output: Output.object({ schema: city }), maxOutputTokens: 200 });
  return {
    text: whole.text,
    finish: whole.finishReason,
    usage: whole.usage,
    parts,
    streamed: text,
    calls: called.toolCalls.map((call) => ({ name: call.toolName, input: call.input })),
    callFinish: called.finishReason,
    object: bound.output,
  };
}

const found = {};
for (const [kind, model] of Object.entries(providers)) found[kind] = await tried(model);
console.log(JSON.stringify(found));
