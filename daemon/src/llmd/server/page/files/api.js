// Requests to the daemon that served this page.

const KEY = "llmd.key";

/** A request that the daemon refused; `message` is in words. */
export class ApiError extends Error {
  constructor(message, status = 0, code = "") {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let askForKey = async () => null;
let asking = null;

/** Sets what asks the user for a key: called with the reason, it returns a key, or null if there is none. */
export function onKeyNeeded(ask) {
  askForKey = ask;
}

export function forgetKey() {
  sessionStorage.removeItem(KEY);
}

/** Asks once, however many requests need the key at that moment. */
export async function newKey(reason) {
  asking ??= askForKey(reason).finally(() => { asking = null; });
  const key = await asking;
  if (key !== null) sessionStorage.setItem(KEY, key);
  return key !== null;
}

/**
 * Sends a request and returns the response, which succeeded. Asks for a key where one is needed, unless `asks` is
 * false.
 * Throws ApiError; an aborted request throws the browser's AbortError.
 */
export async function send(path, { method = "GET", body, headers = {}, signal, asks = true } = {}) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const response = await answered(path, {
      method,
      signal,
      headers: {
        ...headers,
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(key ? { Authorization: `Bearer ${key}` } : {}),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (response.ok) return response;
    const error = await failure(response);
    if (response.status !== 401 || !asks) throw error;
    // Another request may have asked in the meantime.
    if (sessionStorage.getItem(KEY) === key && !(await newKey(error.message))) throw error;
  }
}

export const json = async (path, options) => (await send(path, options)).json();

async function answered(path, options) {
  try {
    return await fetch(path, { ...options, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(`The daemon at ${location.host} does not answer. If it has ended, start it with: llmd serve`);
  }
}

async function failure(response) {
  try {
    const { error } = await response.json();
    const message = typeof error === "string" ? error : error.message;
    return new ApiError(sentence(message), response.status, error.code ?? "");
  } catch {
    return new ApiError(`The daemon answered with status ${response.status}.`, response.status);
  }
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Yields the server-sent events of a response: `id`, `event` and `data`, a text. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const found = { id: "", event: "", data: "" };
        for (const line of part.split("\n")) {
          const colon = line.indexOf(":");
          const name = line.slice(0, colon);
          if (colon > 0 && name in found) found[name] += line.slice(colon + 1).trimStart();
        }
        if (found.data) yield found;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
