// Follows the end of a text that grows, unless the reader has scrolled up.

const NEAR = 48;

export class Scroller {
  #follows = true;

  constructor(box, button) {
    this.box = box;
    this.button = button;
    box.addEventListener("scroll", () => {
      this.#follows = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
      if (this.#follows) button.hidden = true;
    }, { passive: true });
    button.addEventListener("click", () => this.toEnd());
  }

  /** Call it after the text has grown. */
  follow() {
    if (this.#follows) this.box.scrollTop = this.box.scrollHeight;
    else this.button.hidden = false;
  }

  toEnd() {
    this.#follows = true;
    this.button.hidden = true;
    this.box.scrollTop = this.box.scrollHeight;
  }

  /** Call it when the box has become visible: it could not be scrolled before. */
  settle() {
    if (this.#follows) this.toEnd();
  }
}
