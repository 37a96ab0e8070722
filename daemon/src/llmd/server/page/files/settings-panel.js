// System prompt, sampling and tools of the current chat.

import { element } from "./dom.js";
import { EFFORTS, SAMPLING } from "./request.js";

export class SettingsPanel {
  /** `changed` is called after each change of the chat's settings. */
  constructor(root, changed) {
    this.changed = changed;
    this.settings = null;
    this.system = area("Says how the model should answer", 5, (value) => { this.settings.system = value; });
    this.system.id = "system-prompt";
    this.tools = area('[{"type": "function", "function": {"name": "…"}}]', 4, (value) => { this.settings.tools = value; });
    this.tools.spellcheck = false;
    this.fields = new Map(SAMPLING.map((field) => [field.name, this.#number(field)]));
    this.effort = element("select", { onchange: () => this.#set("reasoning_effort", this.effort.value || null) });
    for (const effort of EFFORTS) this.effort.append(element("option", { value: effort }, effort || "as the model decides"));
    for (const one of [this.system, this.tools]) one.addEventListener("input", () => this.changed());
    root.append(
      element("h2", {}, "Settings of this chat"),
      labelled("System prompt", this.system),
      element("h3", {}, "Sampling"),
      element("p", { className: "hint" }, "What is empty is as the model's authors chose."),
      ...SAMPLING.map((field) => labelled(field.label, this.fields.get(field.name), field.hint)),
      labelled("Reasoning effort", this.effort),
      element("button", { type: "button", className: "quiet", onclick: () => this.#clear() }, "Empty all"),
      labelled("Tools (JSON)", this.tools, "what the model may call; this page shows the calls and asks for results"),
    );
  }

  /** Shows the settings of another chat, and changes them from now on. */
  show(settings) {
    this.settings = settings;
    this.system.value = settings.system;
    this.tools.value = settings.tools;
    this.effort.value = settings.sampling.reasoning_effort ?? "";
    for (const [name, input] of this.fields) input.value = settings.sampling[name] ?? "";
  }

  #number({ name, min, max, step }) {
    const input = element("input", { type: "number", inputMode: "decimal", min, max, step, placeholder: "default" });
    // Typing may pass through numbers that the daemon refuses: it says which range it takes.
    input.addEventListener("input", () => this.#set(name, input.value === "" ? null : input.valueAsNumber));
    return input;
  }

  #set(name, value) {
    if (value === null || Number.isNaN(value)) delete this.settings.sampling[name];
    else this.settings.sampling[name] = value;
    this.changed();
  }

  #clear() {
    this.settings.sampling = {};
    this.show(this.settings);
    this.changed();
  }
}

function area(placeholder, rows, changed) {
  const made = element("textarea", { rows, placeholder });
  made.addEventListener("input", () => changed(made.value));
  return made;
}

const labelled = (label, control, hint) =>
  element("label", { className: "field" }, element("span", { className: "label" }, label), control, hint && element("small", {}, hint));
