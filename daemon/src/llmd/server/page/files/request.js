// What a chat sends to the daemon, and what its answer adds to the chat.

import { events, send } from "./api.js";

export const SAMPLING = [
  { name: "temperature", label: "Temperature", min: 0, max: 2, step: 0.05, hint: "0 always takes the likeliest token" },
  { name: "top_p", label: "Top p", min: 0.01, max: 1, step: 0.01, hint: "keep the likeliest tokens up to this share" },
  { name: "top_k", label: "Top k", min: 0, max: 1000, step: 1, hint: "keep this many tokens; 0 keeps all" },
  { name: "min_p", label: "Min p", min: 0, max: 1, step: 0.01, hint: "drop tokens below this share of the best" },
  { name: "repetition_penalty", label: "Repetition penalty", min: 0.5, max: 2, step: 0.05, hint: "1 is off" },
  { name: "max_tokens", label: "Longest answer", min: 1, step: 1, hint: "in tokens; empty: as the window allows" },
  { name: "seed", label: "Seed", min: 0, step: 1, hint: "the same seed gives the same answer" },
];
export const EFFORTS = ["", "none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** Returns the messages of a chat as the API takes them. */
export function apiMessages(chat, draft = "") {
  const { system } = chat.settings;
  const sent = chat.messages.filter((message) => message.role !== "assistant" || message.content || message.calls?.length);
  return [
    ...(system.trim() ? [{ role: "system", content: system }] : []),
    ...sent.map(apiMessage),
    ...(draft.trim() ? [{ role: "user", content: draft }] : []),
  ];
}

function apiMessage({ role, content, calls, callId }) {
  if (role === "tool") return { role, content, tool_call_id: callId };
  if (!calls?.length) return { role, content };
  const named = calls.map(({ id, name, input }) => ({ id, type: "function", function: { name, arguments: input } }));
  return { role, content, tool_calls: named };
}

/** Returns what a chat asks, except how the answer is sent. Throws SyntaxError if its tools are not JSON. */
export function question(chat, draft = "") {
  const tools = chat.settings.tools.trim() ? JSON.parse(chat.settings.tools) : undefined;
  return { model: chat.model || undefined, messages: apiMessages(chat, draft), tools };
}

/**
 * Asks for an answer and adds it to `message` as it arrives; `grew` is called after each piece.
 * Throws ApiError, or AbortError if the signal ends it.
 */
export async function ask(chat, message, requestId, signal, grew) {
  const begun = performance.now();
  const body = {
    ...question(chat),
    ...chat.settings.sampling,
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
  };
  const response = await send("/v1/chat/completions", {
    method: "POST",
    body,
    signal,
    headers: { "x-request-id": requestId },
  });
  const clock = { begun, first: 0, tokens: 0 };
  for await (const { data } of events(response)) {
    if (data === "[DONE]") break;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message);
    add(chunk, message, clock);
    grew();
  }
}

function add(chunk, message, clock) {
  const [choice] = chunk.choices;
  const { delta = {}, finish_reason: finish } = choice ?? {};
  message.model = chunk.model;
  message.content += delta.content ?? "";
  message.reasoning += delta.reasoning_content ?? delta.reasoning ?? "";
  for (const call of delta.tool_calls ?? []) addCall(message.calls, call);
  if (finish) message.finish = finish;
  if (chunk.usage) count(chunk.usage, message, clock);
}

function addCall(calls, { index, id, function: called = {} }) {
  calls[index] ??= { id: "", name: "", input: "" };
  if (id) calls[index].id = id;
  calls[index].name += called.name ?? "";
  calls[index].input += called.arguments ?? "";
}

function count(usage, message, clock) {
  const now = performance.now();
  const tokens = usage.completion_tokens ?? 0;
  if (tokens && !clock.first) Object.assign(clock, { first: now, tokens });
  const rate = tokens > clock.tokens ? ((tokens - clock.tokens) * 1000) / (now - clock.first) : message.usage?.rate ?? 0;
  message.usage = {
    prompt: usage.prompt_tokens,
    cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
    tokens,
    reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0,
    // The last chunk repeats the count: it must not lower the rate.
    rate: tokens === message.usage?.tokens ? message.usage.rate : rate,
    firstMs: clock.first ? clock.first - clock.begun : 0,
  };
}
