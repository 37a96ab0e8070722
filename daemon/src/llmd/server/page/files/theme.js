// Light or dark: as the system, unless the user chooses.

const KEY = "llmd.theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const NAMES = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

export function prepareTheme(button) {
  const show = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = SIGNS[theme];
    button.title = NAMES[theme];
    button.setAttribute("aria-label", NAMES[theme]);
  };
  let theme = localStorage.getItem(KEY) ?? "auto";
  show(theme in NEXT ? theme : "auto");
  button.addEventListener("click", () => {
    theme = NEXT[document.documentElement.dataset.theme];
    localStorage.setItem(KEY, theme);
    show(theme);
  });
}
