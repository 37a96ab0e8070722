// The chat: conversations, messages, the composer.

import { json } from "./api.js";
import { Announcer } from "./announcer.js";
import { ChatStore, randomId, titleOf } from "./chat-store.js";
import { Composer } from "./composer.js";
import { byId, element, keyed, setText } from "./dom.js";
import { MessageView } from "./message-view.js";
import { ModelPicker } from "./model-picker.js";
import { ask } from "./request.js";
import { Scroller } from "./scroller.js";
import { SettingsPanel } from "./settings-panel.js";
import { loadingWords, stateWords } from "./words.js";

export class ChatView {
  #running = null; // the answer that arrives: its message, request id and what stops it
  #views = new Map();
  #frame = 0;
  #models = "";

  constructor(feed) {
    this.feed = feed;
    this.announcer = new Announcer(byId("announcer"));
    this.store = new ChatStore((words) => this.announcer.say(words));
    this.scroller = new Scroller(byId("scroller"), byId("to-end"));
    this.picker = new ModelPicker(byId("model"), (model) => this.#choose(model));
    this.composer = new Composer({
      send: (text) => this.#send(text),
      stop: () => this.#running?.stopper.abort(),
      typed: (text) => {
        this.store.current.draft = text;
        this.store.save();
      },
    });
    this.settings = new SettingsPanel(byId("settings"), () => {
      this.store.save();
      this.#measure();
    });
    byId("new-chat").addEventListener("click", () => this.#open(this.store.add()));
    prepareDrawer(byId("toggle-chats"), byId("chats"));
    prepareDrawer(byId("toggle-settings"), byId("settings"));
    feed.addEventListener("change", () => this.#follow());
  }

  /** Shows the last conversation and asks the daemon for its models. */
  async start() {
    this.#open(this.store.current);
    await this.#loadModels();
  }

  show() {
    this.scroller.settle();
    if (matchMedia("(hover: hover)").matches) this.composer.focus();
  }

  async #loadModels() {
    try {
      const { data } = await json("/v1/models");
      this.picker.show(data, this.store.current.model);
      this.#choose(this.picker.value);
    } catch (error) {
      this.composer.complain(error.message);
    }
  }

  #choose(model) {
    this.store.current.model = model;
    this.store.save();
    this.#measure();
  }

  #open(chat) {
    this.#running?.stopper.abort();
    this.store.choose(chat.id);
    this.settings.show(chat.settings);
    this.picker.choose(chat.model);
    chat.model = this.picker.value || chat.model;
    this.composer.text = chat.draft;
    this.#views.clear();
    byId("messages").replaceChildren();
    this.#show();
    this.scroller.toEnd();
    this.#measure();
    closeDrawers();
    this.show();
  }

  #delete(chat) {
    if (chat.messages.length && !confirm(`Delete this conversation?\n${titleOf(chat)}`)) return;
    const wasOpen = chat === this.store.current;
    this.store.remove(chat.id);
    if (wasOpen) this.#open(this.store.current);
    else this.#showList();
  }

  async #send(text) {
    const chat = this.store.current;
    chat.messages.push({ id: randomId(), role: "user", content: text });
    chat.draft = "";
    this.scroller.toEnd();
    await this.#answer();
  }

  /** Asks for an answer to the conversation as it is; `message` is one that is continued. */
  async #answer(message = null) {
    const chat = this.store.current;
    if (message === null) {
      message = { id: randomId(), role: "assistant", content: "", reasoning: "", calls: [], model: chat.model };
      chat.messages.push(message);
    }
    Object.assign(message, { finish: "", failure: "" });
    const stopper = new AbortController();
    const running = { message, stopper, requestId: `page-${randomId()}` };
    this.#running = running;
    this.composer.begin();
    this.announcer.begin();
    this.#show();
    this.scroller.follow();
    try {
      await ask(chat, message, running.requestId, stopper.signal, () => this.#grew(message));
    } catch (error) {
      if (error.name === "AbortError") message.finish = "stopped";
      else message.failure = error instanceof SyntaxError ? `The tools are not JSON: ${error.message}` : error.message;
    }
    if (this.#running === running) this.#running = null;
    if (!this.picker.value) this.#loadModels(); // a key may have been missing until now
    this.store.saveNow();
    this.#ended(message);
  }

  #grew(message) {
    this.store.save();
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#views.get(message.id)?.update(this.#stateOf(message));
      this.announcer.tell(message.content, false);
      this.scroller.follow();
    });
  }

  #ended(message) {
    if (this.#running === null) this.composer.end();
    this.announcer.tell(message.content, true);
    if (message.failure) this.announcer.say(message.failure);
    this.#show();
    this.scroller.follow();
    this.#measure();
  }

  /** Shows every message, and what is known about an answer that has not begun. */
  #show() {
    const { messages } = this.store.current;
    keyed(
      byId("messages"),
      messages,
      (message) => message.id,
      (message) => this.#viewOf(message).root,
      (_, message) => this.#views.get(message.id).update(this.#stateOf(message)),
    );
    byId("messages").classList.toggle("empty", !messages.length);
    this.#showList();
  }

  #stateOf(message) {
    const running = this.#running?.message === message;
    return { running, waiting: running ? this.#waitingWords() : "", isLast: message === this.store.current.messages.at(-1) };
  }

  #waitingWords() {
    const loading = loadingWords(this.feed.loading.get(this.store.current.model));
    const request = this.feed.live.get(this.#running.requestId);
    const words = loading || (request ? stateWords(request) : "waiting for the first token");
    return `${words.charAt(0).toUpperCase()}${words.slice(1)}…`;
  }

  /** While nothing of an answer has come, the event stream may know why; it also tells of models that come and go. */
  #follow() {
    const models = [...this.feed.models.values()].map(({ name, status }) => `${name} ${status}`).join();
    if (this.feed.status === "connected" && models !== this.#models) {
      this.#models = models;
      this.#loadModels();
    }
    if (this.#running) this.#views.get(this.#running.message.id)?.update(this.#stateOf(this.#running.message));
  }

  #viewOf(message) {
    const view = new MessageView(message, {
      edit: (edited, text) => this.#edit(edited, text),
      regenerate: (again) => this.#ask(again),
      resume: (cut) => this.#answer(cut),
      answer: (caller, call, text) => this.#return(caller, call, text),
    });
    this.#views.set(message.id, view);
    return view;
  }

  #edit(message, text) {
    message.content = text;
    this.#cutAfter(message);
    this.#views.delete(message.id);
    byId("messages").replaceChildren();
    this.#answer();
  }

  #ask(message) {
    const { messages } = this.store.current;
    messages.splice(messages.indexOf(message));
    this.#answer();
  }

  #cutAfter(message) {
    const { messages } = this.store.current;
    messages.splice(messages.indexOf(message) + 1);
  }

  /** Adds the result of a call; once every call has one, the model goes on. */
  #return(message, call, text) {
    message.results = { ...message.results, [call.id]: text };
    this.store.current.messages.push({ id: randomId(), role: "tool", content: text, callId: call.id });
    if (message.calls.every(({ id }) => id in message.results)) this.#answer();
    else this.#show();
  }

  #showList() {
    const { all, current } = this.store;
    keyed(
      byId("chat-list"),
      all,
      (chat) => chat.id,
      (chat) => this.#listItem(chat),
      (item, chat) => {
        const open = item.querySelector(".open");
        setText(open, titleOf(chat));
        if (chat === current) open.setAttribute("aria-current", "true");
        else open.removeAttribute("aria-current");
        item.querySelector(".delete").setAttribute("aria-label", `Delete: ${titleOf(chat)}`);
      },
    );
  }

  #listItem(chat) {
    return element(
      "li",
      {},
      element("button", { type: "button", className: "open quiet", onclick: () => this.#open(chat) }),
      element("button", { type: "button", className: "delete quiet", title: "Delete", onclick: () => this.#delete(chat) }, "×"),
    );
  }

  #measure() {
    this.composer.measure(this.store.current, this.picker.window);
  }
}

function prepareDrawer(button, drawer) {
  const close = () => {
    closeDrawers();
    button.focus();
  };
  drawer.querySelector(".close").addEventListener("click", close);
  button.addEventListener("click", () => {
    const isOpen = !drawer.classList.contains("shown");
    closeDrawers();
    drawer.classList.toggle("shown", isOpen);
    button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) drawer.querySelector("button, textarea, input")?.focus();
  });
  drawer.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && drawer.classList.contains("shown")) close();
  });
}

function closeDrawers() {
  for (const [button, drawer] of [["toggle-chats", "chats"], ["toggle-settings", "settings"]]) {
    byId(drawer).classList.remove("shown");
    byId(button).setAttribute("aria-expanded", "false");
  }
}
