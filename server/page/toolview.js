// Calls of tools: what the model asks for, and where the results are given.

import { el, icon } from "./dom.js";

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json; // still coming, or malformed
  }
}

/** callCards returns a card for each call of a message. */
export function callCards(node, open) {
  return (node.calls ?? []).map((call) => el("section", { class: "card call", "aria-label": `Call of ${call.name}` },
    el("header", null, icon("tool"), el("b", { text: call.name || "…" }), el("span", { class: "muted", text: open ? "is being written" : "was called" })),
    el("pre", { tabindex: "0", text: open ? call.arguments : pretty(call.arguments) })));
}

/** resultForm asks for the results of a message's calls, and hands them to send. */
export function resultForm(node, send) {
  const areas = node.calls.map((call) => el("textarea", { rows: "2", "aria-label": `Result of ${call.name}`, placeholder: `Result of ${call.name}`, required: true }));
  return el("form", {
    class: "results",
    onsubmit: (e) => {
      e.preventDefault();
      send(areas.map((a) => a.value));
    },
  }, el("p", { class: "muted", text: node.calls.length > 1 ? "The answer goes on when these calls have their results." : "The answer goes on when the call has its result." }),
  areas, el("div", { class: "row" }, el("button", { type: "submit", class: "primary", text: node.calls.length > 1 ? "Send results" : "Send result" })));
}
