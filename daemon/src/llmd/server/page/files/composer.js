// The field for the next message, and the gauge of the context window.

import { json } from "./api.js";
import { byId, setText } from "./dom.js";
import { question } from "./request.js";
import { whole } from "./words.js";

const PAUSE_MS = 400;

export class Composer {
  #timer = 0;
  #counting = null;
  #running = false;
  #measured = null;

  /** `send(text)`, `stop()` and `typed(text)` are called when the user does so. */
  constructor({ send, stop, typed }) {
    this.input = byId("prompt");
    this.submit = byId("send");
    this.stopper = byId("stop");
    this.gauge = byId("gauge");
    this.words = byId("gauge-text");
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = this.input.value;
      if (this.#running || !text.trim()) return;
      this.text = "";
      send(text);
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      byId("composer").requestSubmit();
    });
    this.input.addEventListener("input", () => {
      this.#fit();
      typed(this.input.value);
      if (this.#measured) this.measure(...this.#measured);
    });
    this.stopper.addEventListener("click", stop);
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.#running && !document.querySelector("dialog[open]")) stop();
    });
  }

  set text(text) {
    this.input.value = text;
    this.#fit();
  }

  focus() {
    this.input.focus();
  }

  begin() {
    this.#running = true;
    const hadFocus = document.activeElement === this.submit;
    this.submit.hidden = true;
    this.stopper.hidden = false;
    if (hadFocus) this.stopper.focus();
  }

  end() {
    this.#running = false;
    const hadFocus = document.activeElement === this.stopper;
    this.submit.hidden = false;
    this.stopper.hidden = true;
    if (hadFocus) this.focus();
  }

  complain(words) {
    setText(this.words, words);
    this.gauge.hidden = true;
  }

  /** Counts the tokens of the conversation with the draft, soon, against the window of the model. */
  measure(chat, window) {
    this.#measured = [chat, window];
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#count(chat, window), PAUSE_MS);
  }

  async #count(chat, window) {
    this.#counting?.abort();
    if (this.#running || !chat.model) return;
    this.#counting = new AbortController();
    try {
      const asked = question(chat, this.input.value);
      if (!asked.messages.length) return this.#show(0, window);
      const path = "/v1/chat/completions/input_tokens";
      const found = await json(path, { method: "POST", body: asked, signal: this.#counting.signal });
      this.#show(found.input_tokens, window);
    } catch (error) {
      if (error instanceof SyntaxError) this.complain(`The tools are not JSON: ${error.message}`);
      else if (error.name !== "AbortError") this.complain(error.message);
    }
  }

  #show(tokens, window) {
    if (!window) return this.complain(tokens ? `${whole(tokens)} tokens` : "");
    const share = tokens / window;
    this.gauge.hidden = false;
    Object.assign(this.gauge, { high: 0.8, low: 0.6, optimum: 0, value: Math.min(share, 1) });
    const used = `${whole(tokens)} of ${whole(window)} tokens`;
    setText(this.words, share < 1 ? used : `${used}: too long for this model. Shorten the message or begin a new chat.`);
    this.words.classList.toggle("over", share >= 1);
  }

  #fit() {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight + 2, innerHeight * 0.4)}px`;
  }
}
