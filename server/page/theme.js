// The theme is chosen before anything is drawn: this script is no module, so it runs first.
"use strict";
(() => {
  try {
    const theme = JSON.parse(localStorage.getItem("theme"));
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch { /* A browser that keeps nothing follows the system. */ }
})();
