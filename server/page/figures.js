// Figures of an answer, in words.

import { el } from "./dom.js";

const count = new Intl.NumberFormat("en");

/** seconds says how long something takes. */
export function seconds(s) {
  if (s < 0.0995) return `${Math.round(s * 1000)} ms`;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
}

/** bytes says how much something is. */
export function bytes(n) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let u = 0;
  for (; n >= 999.5 && u < units.length - 1; u++) n /= 1000;
  return `${n >= 99.5 || u === 0 ? Math.round(n) : n.toPrecision(n >= 9.95 ? 3 : 2)} ${units[u]}`;
}

/** number says how many there are. */
export const number = (n) => count.format(n);

const ends = { length: "cut at the limit of tokens", stopped: "stopped" };

/** figures returns the line below an answer, or null. */
export function figures(node) {
  const f = node.figures, u = f?.usage, parts = [];
  if (ends[node.finish]) parts.push(ends[node.finish]);
  if (u) {
    parts.push(u.completion_tokens === 1 ? "1 token" : `${number(u.completion_tokens)} tokens`);
    const decode = (f.total_ms - f.first_ms) / 1000;
    if (u.completion_tokens > 1 && decode > 0) parts.push(`${((u.completion_tokens - 1) / decode).toFixed(1)} tokens/s`);
  }
  if (f?.first_ms) parts.push(`first after ${seconds(f.first_ms / 1000)}`);
  if (parts.length === 0) return null;
  const line = el("p", { class: "figures" }, parts.join(" · "));
  const more = u && account(u);
  return more ? el("details", { class: "account" }, el("summary", null, line), more) : line;
}

function account(u) {
  const a = u.moeflux, rows = [["Prompt", `${number(u.prompt_tokens)} tokens, ${number(u.prompt_tokens_details?.cached_tokens ?? 0)} of them known`]];
  if (u.completion_tokens_details?.reasoning_tokens) rows.push(["Reasoning", `${number(u.completion_tokens_details.reasoning_tokens)} tokens`]);
  if (a) {
    const picks = a.experts_hit + a.experts_late + a.experts_missed;
    rows.push(["Queue", seconds(a.queue_ms / 1000)], ["Device", seconds(a.device_ms / 1000)], ["Waiting for the disk", seconds(a.disk_wait_ms / 1000)]);
    if (picks > 0) rows.push(["Experts", `${(100 * a.experts_hit / picks).toFixed(1)} % in memory, ${number(a.experts_late)} late, ${number(a.experts_missed)} missed`]);
    rows.push(["Read from disk", bytes(a.disk_bytes)]);
  }
  return el("dl", null, rows.map(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })]));
}

/** progress returns what is shown while no token has come: how much of the prompt is read. */
export function progress(answer) {
  if (answer.first) return [];
  const passed = (performance.now() - answer.began) / 1000, p = answer.progress;
  if (!p || p.processed >= p.total) {
    const dots = el("span", { class: "dots", role: "img", "aria-label": "Waiting" });
    return passed < 2 ? [dots] : [dots, `Waiting for the first token, ${Math.floor(passed)} s`];
  }
  const parts = [`Reading the prompt: ${number(p.processed)} of ${number(p.total)} tokens`];
  if (p.tokens_per_second) parts.push(`${number(Math.round(p.tokens_per_second))} tokens/s`);
  if (p.left_ms) parts.push(`${seconds(Math.max(1, p.left_ms / 1000 - (performance.now() - answer.progressed) / 1000))} left`);
  return [
    el("progress", { max: String(p.total), value: String(p.processed), "aria-label": "Prompt" }),
    el("span", { text: parts.join(" · ") }),
  ];
}
