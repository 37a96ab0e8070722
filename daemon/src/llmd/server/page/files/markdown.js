// Markdown as models write it, rendered as elements. HTML in the text is shown as text.

import { copyButton, element } from "./dom.js";
import { inline } from "./inline.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const MAX_DEPTH = 12;
const MAX_FORMATTED = 20_000;

/** Shows a text that grows. Only blocks that changed are made again, so that selections and scrolling survive. */
export class Markdown {
  #container;
  #sources = [];

  constructor(container) {
    this.#container = container;
  }

  update(text) {
    const sources = blocks(text);
    let same = 0;
    while (same < sources.length && sources[same] === this.#sources[same]) same += 1;
    while (this.#container.childNodes.length > same) this.#container.lastChild.remove();
    this.#container.append(...sources.slice(same).map((source) => render(source, 0)));
    this.#sources = sources;
  }
}

/** Splits a text into the sources of its blocks. */
export function blocks(text) {
  const lines = text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n");
  const found = [];
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const end = blockEnd(lines, at);
    found.push(lines.slice(at, end).join("\n"));
    at = end;
  }
  return found;
}

function blockEnd(lines, at) {
  const fence = FENCE.exec(lines[at]);
  if (fence) return fenceEnd(lines, at, fence[1]);
  if (HEADING.test(lines[at]) || RULE.test(lines[at])) return at + 1;
  if (QUOTE.test(lines[at])) return runEnd(lines, at, (line) => line.trim() && !FENCE.test(line));
  if (ITEM.test(lines[at])) return listEnd(lines, at);
  if (isTable(lines, at)) return runEnd(lines, at, (line) => line.includes("|"));
  return runEnd(lines, at, (line, place) => place === at || (line.trim() && !interrupts(lines, place)));
}

function fenceEnd(lines, at, mark) {
  const closes = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}\\s*$`);
  const end = lines.findIndex((line, place) => place > at && closes.test(line));
  return end < 0 ? lines.length : end + 1;
}

function runEnd(lines, at, continues) {
  let end = at;
  while (end < lines.length && continues(lines[end], end)) end += 1;
  return Math.max(end, at + 1);
}

function listEnd(lines, at) {
  const outer = indent(lines[at]);
  let end = at + 1;
  while (end < lines.length) {
    const line = lines[end];
    if (!line.trim()) {
      const next = lines.slice(end).findIndex((one) => one.trim());
      if (next < 0) break;
      const after = lines[end + next];
      if (!(ITEM.test(after) && !RULE.test(after)) && indent(after) <= outer) break;
      end += next;
    } else if (FENCE.test(line) && indent(line) > outer) {
      end = fenceEnd(lines.map((one) => one.trimStart()), end, FENCE.exec(line)[1]);
    } else if (indent(line) <= outer && !ITEM.test(line) && interrupts(lines, end)) {
      break;
    } else if (RULE.test(line)) {
      break;
    } else {
      end += 1;
    }
  }
  return end;
}

/** Whether a line ends the paragraph before it. */
function interrupts(lines, at) {
  const line = lines[at];
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line) || isTable(lines, at);
}

const isTable = (lines, at) =>
  lines[at].includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && TABLE_RULE.test(lines[at + 1]);

const indent = (line) => line.length - line.trimStart().length;

function render(source, depth) {
  if (source.length > MAX_FORMATTED && !FENCE.test(source.slice(0, source.indexOf("\n")))) {
    return element("p", { className: "plain" }, source); // a paragraph of this length is no prose: searching it would take long
  }
  const lines = source.split("\n");
  const fence = FENCE.exec(lines[0]);
  if (fence) return code(lines, fence);
  const heading = HEADING.exec(lines[0]);
  // The page itself has the first two levels.
  if (heading) return element(`h${Math.min(6, heading[1].length + 2)}`, {}, ...inline(heading[2]));
  if (RULE.test(lines[0])) return element("hr");
  if (depth < MAX_DEPTH && QUOTE.test(lines[0])) {
    return element("blockquote", {}, ...nested(lines.map((line) => line.replace(QUOTE, "")), depth));
  }
  if (depth < MAX_DEPTH && ITEM.test(lines[0])) return list(lines, depth);
  if (isTable(lines, 0)) return table(lines);
  return element("p", {}, ...inline(source.trim()));
}

const nested = (lines, depth) => blocks(lines.join("\n")).map((source) => render(source, depth + 1));

function code(lines, [, mark, language]) {
  const closed = lines.length > 1 && lines.at(-1).trim().startsWith(mark);
  const text = lines.slice(1, closed ? -1 : undefined).join("\n");
  return element(
    "figure",
    { className: "code" },
    element("figcaption", {}, element("span", {}, language || "text"), copyButton(() => text)),
    element("pre", { tabIndex: 0 }, element("code", {}, text)),
  );
}

function list(lines, depth) {
  const first = ITEM.exec(lines[0]);
  const ordered = /\d/.test(first[2]);
  const outer = first[1].length;
  const items = [];
  let width = 0;
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1].length <= outer + 1) {
      width = item[0].length || 2;
      items.push([line.slice(item[0].length)]);
    } else {
      items.at(-1).push(indent(line) >= width ? line.slice(width) : line.trimStart());
    }
  }
  const made = element(ordered ? "ol" : "ul", ordered ? { start: parseInt(first[2], 10) } : {});
  for (const item of items) made.append(element("li", {}, ...tight(nested(item, depth))));
  return made;
}

/** An item of one paragraph needs no paragraph. */
function tight(nodes) {
  if (nodes.length && nodes[0].tagName === "P" && nodes.slice(1).every((node) => /^[UO]L$/.test(node.tagName))) {
    return [...nodes[0].childNodes, ...nodes.slice(1)];
  }
  return nodes;
}

function table(lines) {
  const aligned = cells(lines[1]).map((cell) => {
    if (/^:.*:$/.test(cell)) return "centre";
    return cell.endsWith(":") ? "right" : "";
  });
  const row = (line, tag) =>
    element("tr", {}, ...cells(line).map((cell, place) => element(tag, { className: aligned[place] ?? "" }, ...inline(cell))));
  return element(
    "div",
    { className: "table", tabIndex: 0, role: "region", "aria-label": "Table" },
    element(
      "table",
      {},
      element("thead", {}, row(lines[0], "th")),
      element("tbody", {}, ...lines.slice(2).map((line) => row(line, "td"))),
    ),
  );
}

/** Splits a row at its bars, except those in code or behind a backslash. */
function cells(line) {
  const found = [];
  let cell = "";
  let inCode = false;
  const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\" && text[at + 1] === "|") {
      cell += "|";
      at += 1;
    } else if (text[at] === "|" && !inCode) {
      found.push(cell.trim());
      cell = "";
    } else {
      if (text[at] === "`") inCode = !inCode;
      cell += text[at];
    }
  }
  return [...found, cell.trim()];
}
