// Asks for the key of a protected daemon.

import { byId, setText } from "./dom.js";

/** Shows the dialog and resolves to the key, or to null if the user has none. */
export function askForKey(reason) {
  const dialog = byId("key-dialog");
  const input = byId("key");
  input.value = "";
  setText(byId("key-reason"), reason);
  dialog.returnValue = "";
  dialog.showModal();
  input.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "use" ? input.value.trim() : null), {
      once: true,
    });
  });
}

export function prepareKeyDialog() {
  const dialog = byId("key-dialog");
  byId("key-cancel").addEventListener("click", () => dialog.close("cancel"));
  // The policy of the page allows no form to be sent anywhere; the dialog is closed by hand.
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (byId("key").value.trim()) dialog.close("use");
  });
}
