// One message of a conversation.

import { copyButton, element, setText } from "./dom.js";
import { Markdown } from "./markdown.js";
import { count, rate, seconds } from "./words.js";

const ENDS = {
  length: "cut off: its token limit or the context window is reached",
  stopped: "stopped",
};

/** Shows a message and follows its changes. `actions`: edit, regenerate, resume and answer, functions of the chat. */
export class MessageView {
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.body = element("div", { className: "text" });
    this.reasoning = element("div", { className: "text" });
    this.thoughts = element("summary", {}, "Reasoning");
    this.folded = element("details", { className: "reasoning", hidden: true }, this.thoughts, this.reasoning);
    this.calls = element("div", { className: "calls" });
    this.status = element("p", { className: "status" });
    this.failure = element("p", { className: "failure", role: "alert", hidden: true });
    this.figures = element("span", { className: "figures" });
    this.buttons = element("span", { className: "buttons" });
    this.who = element("h2", {}, "");
    this.root = element(
      "article",
      { className: `message ${message.role}` },
      this.who,
      this.folded,
      this.body,
      this.calls,
      this.status,
      this.failure,
      element("footer", {}, this.buttons, this.figures),
    );
    this.formatted = message.role === "assistant" ? new Markdown(this.body) : null;
    this.formattedThoughts = new Markdown(this.reasoning);
    this.#prepareButtons();
    this.update();
  }

  #prepareButtons() {
    const { message, actions } = this;
    const button = (label, act) =>
      element("button", { type: "button", className: "quiet small", onclick: () => act(message) }, label);
    this.edit = button("Edit", () => this.#edit());
    this.again = button("Regenerate", actions.regenerate);
    this.more = button("Continue", actions.resume);
    this.copy = copyButton(() => message.content);
    this.buttons.append(this.copy);
    if (message.role === "user") this.buttons.append(this.edit);
    if (message.role === "assistant") this.buttons.append(this.again, this.more);
  }

  /** Shows the message as it is now. `running`: its answer is still arriving; `waiting`: why nothing has come yet. */
  update({ running = false, waiting = "", isLast = false } = {}) {
    const { message } = this;
    setText(this.who, whoWords(message));
    if (this.formatted) this.formatted.update(message.content);
    else setText(this.body, message.content);
    this.#showReasoning(running);
    this.#showCalls(running);
    setText(this.status, running && !message.content && !message.reasoning ? waiting : "");
    this.failure.hidden = !message.failure;
    setText(this.failure, message.failure ?? "");
    setText(this.figures, figureWords(message));
    this.root.classList.toggle("running", running);
    this.root.setAttribute("aria-busy", String(running));
    this.buttons.hidden = running;
    this.copy.hidden = !message.content;
    this.again.hidden = !isLast;
    this.more.hidden = !isLast || !message.content || !["length", "stopped"].includes(message.finish);
  }

  #showReasoning(running) {
    const { reasoning, content, usage } = this.message;
    this.folded.hidden = !reasoning;
    if (!reasoning) return;
    this.formattedThoughts.update(reasoning);
    const isThinking = running && !content;
    const length = usage?.reasoning ? ` (${count(usage.reasoning, "token", "tokens")})` : "";
    setText(this.thoughts, isThinking ? "Reasoning…" : `Reasoning${length}`);
  }

  #showCalls(running) {
    const { calls = [], results = {} } = this.message;
    while (this.calls.children.length > calls.length) this.calls.lastChild.remove();
    calls.forEach((call, place) => {
      const shown = this.calls.children[place] ?? this.calls.appendChild(this.#callElement(call));
      setText(shown.querySelector(".name"), `Calls ${call.name || "a tool"}`);
      setText(shown.querySelector("code"), pretty(call.input));
      shown.querySelector("form").hidden = running || call.id in results;
    });
  }

  #callElement(call) {
    const input = element("textarea", { rows: 2, required: true, "aria-label": "Result of the call" });
    const answer = (event) => {
      event.preventDefault();
      if (input.value.trim()) this.actions.answer(this.message, call, input.value);
    };
    return element(
      "section",
      { className: "call" },
      element("h3", { className: "name" }),
      element("pre", { tabIndex: 0 }, element("code")),
      element(
        "form",
        { onsubmit: answer },
        element("p", { className: "hint" }, "This page does not run tools. Write what the call returned:"),
        input,
        element("button", { type: "submit", className: "small" }, "Return this"),
      ),
    );
  }

  #edit() {
    const { message, actions } = this;
    const area = element("textarea", { value: message.content, rows: Math.min(12, message.content.split("\n").length + 1), "aria-label": "Your message" });
    const close = () => {
      form.replaceWith(this.body);
      this.buttons.hidden = false;
      this.edit.focus();
    };
    const form = element(
      "form",
      {
        className: "edit",
        onsubmit: (event) => {
          event.preventDefault();
          if (area.value.trim()) actions.edit(message, area.value);
        },
        onkeydown: (event) => {
          if (event.key === "Escape") close();
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            form.requestSubmit();
          }
        },
      },
      area,
      element("p", { className: "hint" }, "What follows this message is asked again."),
      element("button", { type: "submit", className: "small" }, "Send"),
      element("button", { type: "button", className: "quiet small", onclick: close }, "Cancel"),
    );
    this.body.replaceWith(form);
    this.buttons.hidden = true;
    area.focus();
  }
}

function whoWords({ role, model }) {
  if (role === "user") return "You";
  return role === "tool" ? "Result of a tool" : model || "Model";
}

function figureWords({ usage, finish }) {
  const parts = [];
  if (usage?.tokens) {
    parts.push(count(usage.tokens, "token", "tokens"));
    if (usage.rate) parts.push(`${rate(usage.rate)} tokens/s`);
    if (usage.firstMs) parts.push(`first after ${seconds(usage.firstMs)}`);
    const cached = usage.cached ? `, ${usage.cached} cached` : "";
    parts.push(`prompt ${count(usage.prompt, "token", "tokens")}${cached}`);
  }
  if (finish in ENDS) parts.push(ENDS[finish]);
  return parts.join(" · ");
}

function pretty(input) {
  try {
    return JSON.stringify(JSON.parse(input), null, 2);
  } catch {
    return input;
  }
}
