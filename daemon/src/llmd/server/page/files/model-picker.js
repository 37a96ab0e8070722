// The list of models.

import { element } from "./dom.js";
import { modelState } from "./words.js";

export class ModelPicker {
  #windows = new Map();

  constructor(select, chosen) {
    this.select = select;
    select.addEventListener("change", () => chosen(select.value));
  }

  get value() {
    return this.select.value;
  }

  /** The context window of the chosen model in tokens; undefined if it is not known. */
  get window() {
    return this.#windows.get(this.value);
  }

  /** Shows the entries of `GET /v1/models`; `wanted` is chosen if it is among them. */
  show(entries, wanted) {
    this.#windows = new Map(entries.map(({ id, max_model_len: window }) => [id, window ?? undefined]));
    this.select.replaceChildren(
      ...entries.map(({ id, status }) => {
        const words = status === "loaded" ? id : `${id} (${modelState(status)})`;
        return element("option", { value: id }, words);
      }),
    );
    this.select.disabled = !entries.length;
    this.choose(wanted);
  }

  choose(model) {
    if (this.#windows.has(model)) this.select.value = model;
  }
}
