// Conversations, kept in this browser.

const CHATS = "llmd.chats";
const CURRENT = "llmd.chat";
const TITLE_LENGTH = 60;

export const NO_SETTINGS = { system: "", tools: "", sampling: {} };

/** Returns a random id; `crypto.randomUUID` exists only on https and localhost. */
export function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class ChatStore {
  #chats = [];
  #currentId = "";
  #saving = 0;

  /** `failed` is called with words if the browser's storage is full. */
  constructor(failed) {
    this.failed = failed;
    try {
      this.#chats = JSON.parse(localStorage.getItem(CHATS) ?? "[]").filter((chat) => Array.isArray(chat.messages));
    } catch {
      this.#chats = [];
    }
    this.#currentId = localStorage.getItem(CURRENT) ?? "";
    if (!this.#chats.length) this.add();
    addEventListener("pagehide", () => this.saveNow());
  }

  get all() {
    return this.#chats;
  }

  get current() {
    return this.#chats.find((chat) => chat.id === this.#currentId) ?? this.#chats[0];
  }

  choose(id) {
    this.#currentId = id;
    this.saveNow();
  }

  /** Begins a chat with the model and settings of the current one; an empty chat is used again. */
  add() {
    const before = this.current;
    if (before && !before.messages.length) return before;
    const { model = "", settings = NO_SETTINGS } = before ?? {};
    const chat = { id: randomId(), title: "", draft: "", messages: [], model, settings: structuredClone(settings) };
    this.#chats.unshift(chat);
    this.choose(chat.id);
    return chat;
  }

  remove(id) {
    this.#chats = this.#chats.filter((chat) => chat.id !== id);
    if (!this.#chats.length) this.add();
    this.saveNow();
  }

  /** Saves soon: an answer changes its chat many times a second. */
  save() {
    this.#saving ||= setTimeout(() => this.saveNow(), 500);
  }

  saveNow() {
    clearTimeout(this.#saving);
    this.#saving = 0;
    try {
      localStorage.setItem(CHATS, JSON.stringify(this.#chats));
      localStorage.setItem(CURRENT, this.current.id);
    } catch {
      this.failed("The browser's storage is full: this conversation is not kept. Delete some chats.");
    }
  }
}

/** Returns what a chat is called in the list: its first question. */
export function titleOf(chat) {
  const first = chat.messages.find((message) => message.role === "user")?.content.trim().replace(/\s+/g, " ");
  if (!first) return "New chat";
  return first.length > TITLE_LENGTH ? `${first.slice(0, TITLE_LENGTH)}…` : first;
}
