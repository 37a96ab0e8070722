// A small line chart of the last values.

import { drawn } from "./dom.js";

const WIDTH = 160;
const HEIGHT = 36;

/** A chart that `update` draws again; its words are next to it, so that it is hidden from screen readers. */
export class Sparkline {
  constructor() {
    this.area = drawn("path", { class: "area" });
    this.line = drawn("path", { class: "line" });
    const box = { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" };
    this.root = drawn("svg", box, this.area, this.line);
  }

  /** `values`: oldest first; `length`: how many fill the width; `most`: the value at the top, if it is fixed. */
  update(values, length, most = 0) {
    const top = Math.max(most, ...values, 1e-9);
    const step = WIDTH / (length - 1);
    const left = WIDTH - (values.length - 1) * step;
    const points = values.map((value, place) => {
      const x = left + place * step;
      const y = HEIGHT - 2 - (value / top) * (HEIGHT - 4);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    });
    this.line.setAttribute("d", points.length ? `M${points.join("L")}` : "");
    this.area.setAttribute("d", points.length ? `M${left.toFixed(1)},${HEIGHT}L${points.join("L")}L${WIDTH},${HEIGHT}Z` : "");
  }
}
