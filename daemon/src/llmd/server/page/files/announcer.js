// Tells screen readers what arrives, by whole sentences: a text that changes with every token cannot be followed.

const SENTENCE = /[^.!?\n]*[.!?\n]+["')\]]*(?=\s|$)/g;
const KEPT = 20;

export class Announcer {
  #region;
  #said = 0;

  constructor(region) {
    this.#region = region;
  }

  begin() {
    this.#said = 0;
    this.#region.replaceChildren();
  }

  /** `isWhole`: no more will come, so the rest is said, too. */
  tell(text, isWhole) {
    const rest = text.slice(this.#said);
    const ready = isWhole ? rest : (rest.slice(0, -1).match(SENTENCE) ?? []).join("");
    if (!ready.trim()) return;
    this.#said += ready.length;
    this.say(ready);
  }

  say(text) {
    const line = document.createElement("p");
    line.textContent = text;
    this.#region.append(line);
    while (this.#region.children.length > KEPT) this.#region.firstElementChild.remove();
  }
}
