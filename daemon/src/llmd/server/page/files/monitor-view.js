// The monitor: what the daemon does now, from its event stream.

import { forgetKey, json, newKey, send } from "./api.js";
import { Sparkline } from "./charts.js";
import { element, keyed, setText } from "./dom.js";
import { bytes, count, loadingWords, modelState, percent, rate, seconds, stateWords, whole } from "./words.js";

const SECONDS = 120;
const REFRESH_MS = 500;
const BLOCK_TOKENS = 16;

const TILES = [
  { name: "output", label: "Answers", unit: "tokens/s", words: rate },
  { name: "prompt", label: "Prompts", unit: "tokens/s", words: rate },
  { name: "running", label: "Running", unit: "sequences", words: whole },
  { name: "waiting", label: "Waiting", unit: "requests", words: whole },
  { name: "kv", label: "KV cache in use", unit: "", words: percent, most: 1 },
];

export class MonitorView {
  #timer = 0;
  #isShown = false;
  #isLoading = false;

  constructor(root, feed) {
    this.feed = feed;
    this.notice = element("div", { className: "notice", role: "status", hidden: true });
    this.tiles = new Map(TILES.map((tile) => [tile.name, new Tile(tile)]));
    this.models = table(["Model", "State", "Running", "Waiting", "Tokens/s", "KV cache", ""]);
    this.requests = table(["Request", "Model", "State", "Prompt", "Answer", "Tokens/s", "Time", ""]);
    this.ended = table(["Ended", "Model", "How", "Prompt", "Answer", "First token", "Time"]);
    this.devices = table(["Device", "What it is", "Memory", "State"]);
    this.verdicts = element("ul", { className: "verdicts" });
    root.append(
      element("h1", { className: "unseen" }, "Monitor"),
      this.notice,
      element("section", { className: "tiles", "aria-label": "Now" }, ...[...this.tiles.values()].map((tile) => tile.root)),
      this.verdicts,
      section("Models", this.models, "No model is loaded. The first request loads one."),
      section("Requests", this.requests, "No request is running."),
      section("Lately ended", this.ended, "None since this page was opened."),
      section("Devices", this.devices, "The daemon has not looked for devices yet."),
    );
    feed.addEventListener("change", () => this.#soon());
  }

  show() {
    this.#isShown = true;
    this.#update();
    if (this.feed.status === "connected") this.#loadDevices();
  }

  #soon() {
    if (this.feed.status === "connected" && this.#isShown && !this.devices.body.children.length) this.#loadDevices();
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.#update();
    }, REFRESH_MS);
  }

  /** The devices do not come by themselves. */
  async #loadDevices() {
    if (this.#isLoading) return;
    this.#isLoading = true;
    try {
      const { devices } = await json("/llmd/devices");
      this.#showDevices(devices);
    } catch (error) {
      this.#say(error.message);
    } finally {
      this.#isLoading = false;
    }
  }

  #update() {
    if (document.getElementById("monitor-view").hidden) return;
    this.#showStatus();
    this.#showTiles();
    this.#showVerdicts();
    this.#showModels();
    this.#showRequests();
    this.#showEnded();
  }

  #showStatus() {
    const { status, problem } = this.feed;
    if (status === "connected") this.#say("");
    else if (status === "refused") this.#say(problem, "Use a key that may manage");
    else this.#say(status === "lost" ? `${problem} Trying again…` : "Connecting…");
  }

  #say(words, action = "") {
    this.notice.hidden = !words;
    if (this.notice.dataset.words === words) return;
    this.notice.dataset.words = words;
    const button = element("button", { type: "button", onclick: () => this.#useKey() }, action);
    this.notice.replaceChildren(element("p", {}, words), ...(action ? [button] : []));
  }

  async #useKey() {
    forgetKey();
    if (await newKey("The monitor needs a key that may manage the daemon.")) this.feed.retry();
  }

  #showTiles() {
    const { history } = this.feed;
    for (const { name, most } of TILES) {
      const values = history.map((one) => (name === "kv" ? one.used / (one.total || 1) : one[name]));
      this.tiles.get(name).update(values, most);
    }
  }

  #showVerdicts() {
    const found = [...this.feed.models.values()].flatMap(({ name, verdicts }) =>
      (verdicts ?? []).map(({ text, level }) => ({ words: `${name}: ${text}`, level })));
    keyed(this.verdicts, found, ({ words }) => words, ({ level }) => element("li", { className: level ?? "" }), (item, { words }) => {
      setText(item, words);
    });
  }

  #showModels() {
    const { models, loading } = this.feed;
    const rows = [...models.values()];
    this.models.update(rows, (model) => model.name, (model) => {
      const { report, speed } = model;
      const used = report?.kv_blocks_total ? report.kv_blocks_used / report.kv_blocks_total : 0;
      const why = loading.get(model.name);
      const state = loadingWords(why) || modelState(model.status);
      return [
        model.name,
        why?.reason && model.status !== "loaded" ? `${state}: ${why.reason}` : state,
        whole(report?.running ?? 0),
        whole(model.waiting ?? 0),
        rate(speed?.output ?? 0),
        report?.kv_blocks_total ? `${percent(used)} of ${whole(report.kv_blocks_total * BLOCK_TOKENS)} tokens` : "none",
      ];
    }, (model) => ({ label: "Unload", act: () => this.#do("/llmd/stop", { model: model.name }) }));
  }

  #showRequests() {
    const rows = [...this.feed.live.values()];
    this.requests.update(rows, (request) => request.request_id, (request) => {
      const sinceFirst = request.ttft_ms === null ? 0 : request.ms - request.ttft_ms;
      const speed = sinceFirst > 0 && request.completion_tokens > 1 ? rate((request.completion_tokens * 1000) / sinceFirst) : "";
      return [
        `${request.route}${request.key ? ` (${request.key})` : ""}`,
        request.model,
        stateWords(request),
        promptWords(request),
        answerWords(request),
        speed,
        seconds(request.ms + (performance.now() - (request.seen ?? performance.now()))),
      ];
    }, (request) => ({ label: "Cancel", act: () => this.#do("/llmd/cancel", { request_id: request.request_id }) }));
  }

  #showEnded() {
    this.ended.update(this.feed.ended, (request) => `${request.request_id} ${request.number}`, (request) => [
      request.at.toLocaleTimeString(),
      request.model,
      stateWords(request),
      promptWords(request),
      answerWords(request),
      request.ttft_ms === null ? "" : seconds(request.ttft_ms),
      seconds(request.ms),
    ]);
  }

  #showDevices(devices) {
    this.devices.update(devices, (device) => device.name, (device) => [
      device.name,
      device.description || device.kind,
      device.memory_bytes ? bytes(device.memory_bytes) : "",
      device.ok ? "usable" : `not used: ${device.reason}${device.fix ? `. ${device.fix}` : ""}`,
    ]);
  }

  async #do(path, body) {
    try {
      await send(path, { method: "POST", body });
    } catch (error) {
      this.#say(error.message);
    }
  }
}

const promptWords = ({ prompt_tokens: prompt, cached_tokens: cached }) =>
  prompt ? `${count(prompt, "token", "tokens")}${cached ? `, ${whole(cached)} cached` : ""}` : "";

const answerWords = ({ completion_tokens: tokens }) => (tokens ? count(tokens, "token", "tokens") : "");

/** One figure with its course over the last two minutes. */
class Tile {
  constructor({ label, unit, words }) {
    this.words = words;
    this.value = element("strong");
    this.chart = new Sparkline();
    this.root = element("div", { className: "tile" }, element("span", { className: "label" }, label),
      element("span", {}, this.value, ` ${unit}`), this.chart.root);
  }

  update(values, most) {
    setText(this.value, values.length ? this.words(values.at(-1)) : "–");
    this.chart.update(values, SECONDS, most);
  }
}

function section(title, shown, nothing) {
  shown.nothing = element("p", { className: "hint" }, nothing);
  return element("section", {}, element("h2", {}, title), shown.root, shown.nothing);
}

/** A table whose rows keep their elements while their keys stay. */
function table(columns) {
  const body = element("tbody");
  const root = element("div", { className: "table", tabIndex: 0, role: "region", "aria-label": columns[0], hidden: true },
    element("table", {}, element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)))), body));
  const shown = { root, body, nothing: null };
  shown.update = (rows, keyOf, cellsOf, actionOf = null) => {
    root.hidden = !rows.length;
    shown.nothing.hidden = rows.length > 0;
    const create = (row) => {
      const cells = cellsOf(row).map((_, place) => element("td", { "data-label": columns[place] }));
      const action = actionOf?.(row);
      const button = action && element("button", { type: "button", className: "quiet small", onclick: action.act }, action.label);
      return element("tr", {}, ...cells, columns.at(-1) === "" && element("td", {}, button));
    };
    keyed(body, rows, keyOf, create, (made, row) => {
      cellsOf(row).forEach((text, place) => setText(made.children[place], text));
    });
  };
  return shown;
}
