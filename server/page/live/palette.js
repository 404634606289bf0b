// Colours of the canvases: those of live.css, in the theme of the moment.

const probe = document.createElement("span");
probe.className = "hidden-text";
let theme = "", known = new Map();

const dark = matchMedia("(prefers-color-scheme: dark)");

/** color returns the colour that live.css has for a name. */
export function color(name) {
  const now = `${document.documentElement.dataset.theme ?? ""}${dark.matches}`;
  if (now !== theme) {
    theme = now;
    known = new Map();
  }
  if (!known.has(name)) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(--k-${name}, var(--muted))`;
    known.set(name, getComputedStyle(probe).color);
  }
  return known.get(name);
}

/** onTheme calls f when the colours have changed. */
export function onTheme(f) {
  dark.addEventListener("change", f);
  new MutationObserver(f).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}

/** surface fits a canvas to its box and returns what draws on it, in CSS pixels. */
export function surface(canvas, height) {
  const width = canvas.parentElement.clientWidth, scale = Math.min(2, devicePixelRatio || 1);
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
  }
  const draw = canvas.getContext("2d");
  draw.setTransform(scale, 0, 0, scale, 0, 0);
  draw.clearRect(0, 0, width, height);
  return { draw, width };
}

/** swatch is a patch of a colour, for legends. */
export function swatch(name) {
  const e = document.createElement("i");
  e.className = "swatch";
  e.style.background = `var(--k-${name}, var(--muted))`;
  return e;
}

/** put writes a text where it has changed: what has not is not laid out again. */
export function put(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

/** percent says a share. */
export function percent(share) {
  const p = 100 * share;
  return p > 0 && p < 0.95 ? "< 1 %" : `${Math.round(p)} %`;
}

/** time says how long some microseconds are. */
export function time(us) {
  if (us < 999.5) return `${Math.round(us)} µs`;
  if (us < 99_500) return `${(us / 1000).toFixed(us < 9950 ? 1 : 0)} ms`;
  return us < 999_500 ? `${Math.round(us / 1000)} ms` : `${(us / 1e6).toFixed(us < 9.95e6 ? 1 : 0)} s`;
}
