// Numbers and states in words.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const ONE_DIGIT = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export const whole = (number) => WHOLE.format(number);
export const rate = (number) => (number < 10 ? ONE_DIGIT : WHOLE).format(number);
export const percent = (share) => `${WHOLE.format(share * 100)} %`;

export function seconds(ms) {
  if (ms < 1000) return `${WHOLE.format(ms)} ms`;
  if (ms < 60_000) return `${ONE_DIGIT.format(ms / 1000)} s`;
  const whole = Math.floor(ms / 1000);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

export function bytes(number) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  let value = number;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${ONE_DIGIT.format(value)} ${units[unit]}`;
}

export const count = (number, one, many) => `${whole(number)} ${number === 1 ? one : many}`;

const WAITS = {
  model: "its model is being loaded",
  memory: "its model waits for memory that other models use",
  slots: "the limit of running requests is reached",
  kv_blocks: "too few KV blocks are free",
  grammar: "its grammar is being prepared",
  earlier: "an earlier request comes first",
  client: "its client reads too slowly",
};

/** Says what a request of the event stream does, and why it waits if it does. */
export function stateWords(request) {
  const why = request.waiting_for ? WAITS[request.waiting_for] ?? String(request.waiting_for) : "";
  switch (request.state) {
    case "queued":
    case "waiting":
      return why ? `waiting: ${why}` : "waiting for its turn";
    case "prefill": {
      const { prompt_done: done, prompt_tokens: total } = request;
      return total ? `reading the prompt, ${whole(done ?? 0)} of ${whole(total)} tokens` : "reading the prompt";
    }
    case "decode":
      return "answering";
    default:
      return endWords(request);
  }
}

const FINISHES = { stop: "finished", length: "reached its token limit", tool_calls: "called a tool" };

function endWords(request) {
  if (request.error) return `failed: ${request.error}`;
  if (!request.finish) return "the client left";
  return FINISHES[request.finish] ?? request.finish;
}

const MODEL_STATES = { loaded: "ready", loading: "loading", unloaded: "not loaded", failed: "failed" };

export const modelState = (status) => MODEL_STATES[status] ?? status;

/** Returns how far a model's loading is, from the last `model` event. */
export function loadingWords(event) {
  if (!event || event.phase !== "loading") return "";
  const share = event.total ? ` ${percent(event.done / event.total)}` : "";
  return `loading: ${event.step}${share}`;
}
