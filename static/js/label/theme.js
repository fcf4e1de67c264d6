// Dark or light, kept in this browser by the cookie that the server reads too: the
// next page comes in its colours at once.

const YEAR_S = 365 * 24 * 3600;

// listenTheme takes over the form that asks the server for the other colours.
export function listenTheme(form) {
  const button = form.querySelector("button");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const theme = button.value;
    document.cookie = `winnow_theme=${theme}; path=/; max-age=${YEAR_S}; samesite=lax`;
    document.documentElement.dataset.theme = theme;
    button.value = theme === "dark" ? "light" : "dark";
    button.querySelector("[data-theme-name]").textContent = theme === "dark" ? "Light" : "Dark";
  });
}
