// Markdown within a line: code, emphasis, links. Returns nodes; HTML in the text stays text.

import { element } from "./dom.js";

const SCHEMES = new Set(["http:", "https:", "mailto:"]);
const ESCAPABLE = /[!-/:-@[-`{-~]/;

const RULES = [
  { pattern: /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)/y, make: ([, , code]) => element("code", {}, trimmed(code)) },
  { pattern: /\*\*(?=\S)([\s\S]*?\S)\*\*(?!\*)/y, make: ([, text]) => element("strong", {}, ...inline(text)) },
  { pattern: /\*(?=[^\s*])([\s\S]*?[^\s*])\*(?!\*)/y, make: ([, text]) => element("em", {}, ...inline(text)) },
  { pattern: /~~(?=\S)([\s\S]*?\S)~~/y, make: ([, text]) => element("del", {}, ...inline(text)) },
  // Underscores within a word are part of it: snake_case.
  { pattern: /__(?=\S)([\s\S]*?\S)__(?!\w)/y, make: ([, text]) => element("strong", {}, ...inline(text)), apart: true },
  { pattern: /_(?=[^\s_])([\s\S]*?[^\s_])_(?!\w)/y, make: ([, text]) => element("em", {}, ...inline(text)), apart: true },
  // No picture is loaded: its address might belong to someone else.
  { pattern: /!\[([^\]\n]*)\]\((\S+?)(?:\s+"[^"\n]*")?\)/y, make: ([, text, to]) => link(to, [`Picture: ${text || to}`]) },
  { pattern: /\[([^\]\n]+)\]\((\S+?)(?:\s+"[^"\n]*")?\)/y, make: ([, text, to]) => link(to, inline(text)) },
  { pattern: /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y, make: ([, to]) => link(to, [to]) },
  { pattern: /https?:\/\/[^\s<>`"]*[^\s<>`".,:;!?')\]*_]/y, make: ([to]) => link(to, [to]), apart: true },
];

/** Returns the nodes of a text. */
export function inline(text) {
  const nodes = [];
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(document.createTextNode(plain));
    plain = "";
  };
  for (let at = 0; at < text.length;) {
    const char = text[at];
    if (char === "\\" && ESCAPABLE.test(text[at + 1] ?? "")) {
      plain += text[at + 1];
      at += 2;
      continue;
    }
    if (char === "\n") {
      plain = plain.trimEnd();
      flush();
      nodes.push(element("br"));
      at += 1;
      continue;
    }
    const found = matched(text, at);
    if (found === null) {
      plain += char;
      at += 1;
      continue;
    }
    flush();
    nodes.push(found.node);
    at += found.length;
  }
  flush();
  return nodes;
}

function matched(text, at) {
  for (const { pattern, make, apart } of RULES) {
    if (apart && at > 0 && /\w/.test(text[at - 1])) continue;
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null) continue;
    const length = match[0].length; // before `make`, which uses the same patterns for what is inside
    const node = make(match);
    if (node !== null) return { node, length };
  }
  return null;
}

/** Returns a link, or null if its address is not one that may be opened: `javascript:` and the like stay text. */
function link(to, children) {
  let url;
  try {
    url = new URL(to);
  } catch {
    return null;
  }
  if (!SCHEMES.has(url.protocol)) return null;
  return element("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

const trimmed = (code) => (/^ .*[^ ].* $/s.test(code) ? code.slice(1, -1) : code).replaceAll("\n", " ");
