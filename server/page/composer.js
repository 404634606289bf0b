// Where messages are written.

import { by, icon } from "./dom.js";

/** composer connects the form to a chat. */
export function composer(chat) {
  const form = by("composer"), area = by("input"), send = by("send");
  const grow = () => {
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  };
  const draw = () => {
    const busy = chat.running();
    send.replaceChildren(icon(busy ? "stop" : "send"));
    const label = busy ? "Stop" : "Send";
    send.setAttribute("aria-label", label);
    send.title = busy ? "Stop (Esc)" : "Send (Enter)";
    send.disabled = !busy && !area.value.trim();
  };
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    if (chat.running()) {
      chat.stop();
    } else if (area.value.trim()) {
      const text = area.value;
      area.value = "";
      chat.send(text);
    }
    grow();
    draw();
    area.focus();
  });
  area.addEventListener("input", () => { grow(); draw(); });
  area.addEventListener("keydown", (e) => {
    if (e.isComposing) return;
    if (e.key === "Enter" && !e.shiftKey) {
      e.preventDefault();
      if (!chat.running()) form.requestSubmit();
    } else if (e.key === "ArrowUp" && !area.value) {
      e.preventDefault();
      chat.editLast();
    }
  });
  addEventListener("keydown", (e) => {
    if (e.key === "Escape" && !e.defaultPrevented && !document.querySelector("dialog[open]") && !by("chat").hidden && chat.running()) {
      e.preventDefault();
      chat.stop();
    }
  });
  draw();
  return { draw, focus: () => area.focus() };
}
