// Starts the page: two views of one daemon, chosen by the address (#chat, #monitor).

import { onKeyNeeded } from "./api.js";
import { ChatView } from "./chat-view.js";
import { byId, setText } from "./dom.js";
import { Feed } from "./feed.js";
import { askForKey, prepareKeyDialog } from "./key-dialog.js";
import { MonitorView } from "./monitor-view.js";
import { prepareTheme } from "./theme.js";

const TITLES = { chat: "Chat", monitor: "Monitor" };

prepareTheme(byId("theme"));
prepareKeyDialog();

const feed = new Feed();
onKeyNeeded(async (reason) => {
  const key = await askForKey(reason);
  if (key !== null) setTimeout(() => feed.retry()); // once the key is kept
  return key;
});
const chat = new ChatView(feed);
const monitor = new MonitorView(byId("monitor-view"), feed);

function show() {
  const name = location.hash === "#monitor" ? "monitor" : "chat";
  for (const one of Object.keys(TITLES)) {
    byId(`${one}-view`).hidden = one !== name;
    const link = byId(`to-${one}`);
    if (one === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  byId("skip").hidden = name !== "chat";
  document.title = `${TITLES[name]} · llmd`;
  if (name === "monitor") monitor.show();
  else chat.show();
}

function showConnection() {
  setText(byId("version"), feed.version);
  const words = { connected: "", connecting: "", refused: "", lost: feed.problem };
  setText(byId("connection"), words[feed.status]);
}

byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("prompt").focus();
});
addEventListener("hashchange", show);
feed.addEventListener("change", showConnection);
show();
await chat.start();
feed.start();
