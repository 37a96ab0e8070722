// The daemon's event stream, and the state that its events make. Reconnects by itself.

import { events, send } from "./api.js";

const RETRY_MS = [500, 1000, 2000, 5000];
const HISTORY = 120;
const ENDED = 20;
const HIDDEN_MS = 5000;

export class Feed extends EventTarget {
  status = "connecting"; // or "connected", "lost", "refused"
  problem = "";
  version = "";
  models = new Map();
  loading = new Map();
  live = new Map();
  ended = [];
  processes = {};
  history = [];

  #stopper = null;
  #before = null;

  /** Follows the events while the page is visible: a browser opens few connections to one host. */
  start() {
    this.#connect();
    let hiding = 0;
    document.addEventListener("visibilitychange", () => {
      clearTimeout(hiding);
      if (document.hidden) hiding = setTimeout(() => this.#stopper?.abort(), HIDDEN_MS);
      else this.retry();
    });
  }

  /** Connects again if nothing does so already: after a refusal, or when the page is visible again. */
  retry() {
    if (this.#stopper === null || this.#stopper.signal.aborted) this.#connect();
  }

  async #connect() {
    const stopper = new AbortController();
    this.#stopper = stopper;
    for (let failures = 0; !stopper.signal.aborted; failures += 1) {
      try {
        await this.#follow(stopper.signal, () => { failures = 0; });
        this.#become("lost", "The daemon ended the connection.");
      } catch (error) {
        if (stopper.signal.aborted) break;
        if (error.status === 401 || error.status === 403) {
          this.#become("refused", error.message);
          break;
        }
        this.#become("lost", error.message);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]));
    }
    if (this.#stopper === stopper) this.#stopper = null;
  }

  async #follow(signal, connected) {
    // Without Last-Event-ID: the first event is a snapshot, also after the daemon was started again.
    const response = await send("/llmd/events", { signal, asks: false });
    connected();
    this.#become("connected", "");
    for await (const { data } of events(response)) {
      this.#take(JSON.parse(data));
      this.dispatchEvent(new Event("change"));
    }
  }

  #become(status, problem) {
    this.status = status;
    this.problem = problem;
    this.dispatchEvent(new Event("change"));
  }

  #take(event) {
    switch (event.type) {
      case "snapshot":
        this.version = event.version;
        this.live = new Map(event.requests.map((request) => [request.request_id, request]));
        this.#report(event);
        break;
      case "report":
        this.#report(event);
        break;
      case "request":
        this.#request(event);
        break;
      case "model":
        this.loading.set(event.model, event);
        break;
    }
  }

  #request(event) {
    if (event.phase !== "end") {
      this.live.set(event.request_id, { ...event, seen: performance.now() });
      return;
    }
    this.live.delete(event.request_id);
    this.ended = [{ ...event, at: new Date() }, ...this.ended].slice(0, ENDED);
  }

  #report(event) {
    const now = performance.now();
    const totals = sums(event.models);
    const before = this.#before;
    this.#before = { now, totals };
    const speeds = new Map();
    for (const model of event.models) {
      speeds.set(model.name, speed(model.report, this.models.get(model.name)?.report, now - (before?.now ?? now)));
    }
    this.models = new Map(event.models.map((model) => [model.name, { ...model, speed: speeds.get(model.name) }]));
    this.processes = event.processes ?? {};
    const sample = { ...totals, output: 0, prompt: 0 };
    for (const { output, prompt } of speeds.values()) {
      sample.output += output;
      sample.prompt += prompt;
    }
    this.history = [...this.history, sample].slice(-HISTORY);
  }
}

function sums(models) {
  const found = { running: 0, waiting: 0, used: 0, total: 0 };
  for (const { report, waiting } of models) {
    found.waiting += waiting ?? 0;
    found.running += report?.running ?? 0;
    found.used += report?.kv_blocks_used ?? 0;
    found.total += report?.kv_blocks_total ?? 0;
  }
  return found;
}

/** Returns tokens per second between two reports of one engine; its counters start at 0 when it starts. */
function speed(report, before, ms) {
  const grown = (name) => Math.max(0, (report?.[name] ?? 0) - (before?.[name] ?? report?.[name] ?? 0));
  if (!report || ms <= 0) return { output: 0, prompt: 0 };
  return { output: (grown("output_tokens") * 1000) / ms, prompt: (grown("prompt_tokens") * 1000) / ms };
}
