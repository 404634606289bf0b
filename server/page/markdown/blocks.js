// Markdown's blocks, as models write them. Setext headings, indented code, reference links and HTML
// are left out on purpose: in models' answers they are mostly something else.

const fence = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`\n]*)$/;
const heading = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const rule = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const quote = /^ {0,3}> ?/;
const marker = /^( *)([-*+]|\d{1,9}[.)])(?: +|$)/;
const divider = /^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$/;
const blank = /^[ \t]*$/;
const deepest = 12; // lists in lists

/**
 * parse returns the blocks of a text: each has a type, its src and the line at which it begins
 * (at), and what its type has: text, level, lang, closed, blocks, items, rows.
 */
export function parse(text) {
  return blocksOf(text.split("\n"), 0);
}

function blocksOf(lines, depth) {
  const blocks = [];
  for (let i = 0; i < lines.length;) {
    if (blank.test(lines[i])) {
      i++;
      continue;
    }
    const [block, next] = blockAt(lines, i, depth);
    block.at = i;
    block.src = lines.slice(i, next).join("\n");
    blocks.push(block);
    i = next;
  }
  return blocks;
}

function blockAt(lines, i, depth) {
  const line = lines[i];
  let m;
  if ((m = fence.exec(line))) return code(lines, i, m);
  if ((m = heading.exec(line))) return [{ type: "heading", level: m[1].length, text: m[2] ?? "" }, i + 1];
  if (rule.test(line)) return [{ type: "rule" }, i + 1];
  if (depth < deepest && quote.test(line)) return quoted(lines, i, depth);
  if (depth < deepest && (m = marker.exec(line)) && m[1].length < 4) return list(lines, i, depth);
  if (isTable(lines, i)) return table(lines, i);
  return paragraph(lines, i);
}

function code(lines, i, [, indent, mark, info]) {
  const close = new RegExp(`^ {0,3}\\${mark[0]}{${mark.length},}[ \\t]*$`);
  const strip = new RegExp(`^ {0,${indent.length}}`);
  let end = i + 1;
  while (end < lines.length && !close.test(lines[end])) end++;
  const closed = end < lines.length;
  const text = lines.slice(i + 1, end).map((l) => l.replace(strip, "")).join("\n");
  return [{ type: "code", lang: info.trim().split(/\s/)[0], text, closed }, closed ? end + 1 : end];
}

// begins reports whether a line begins a block other than a paragraph, and so ends one.
function begins(line) {
  const m = marker.exec(line);
  const item = m && m[0].length < line.length && (!/\d/.test(m[2]) || /^1[.)]$/.test(m[2]));
  return item || fence.test(line) || heading.test(line) || rule.test(line) || quote.test(line);
}

function paragraph(lines, i) {
  let end = i + 1;
  while (end < lines.length && !blank.test(lines[end]) && !begins(lines[end]) && !isTable(lines, end)) end++;
  return [{ type: "paragraph", text: lines.slice(i, end).map((l) => l.replace(/^[ \t]+/, "")).join("\n") }, end];
}

function quoted(lines, i, depth) {
  let end = i;
  const inner = [];
  for (; end < lines.length; end++) {
    if (quote.test(lines[end])) inner.push(lines[end].replace(quote, ""));
    else if (blank.test(lines[end]) || begins(lines[end]) || blank.test(inner.at(-1))) break;
    else inner.push(lines[end]);
  }
  return [{ type: "quote", blocks: blocksOf(inner, depth + 1) }, end];
}

function list(lines, i, depth) {
  const first = marker.exec(lines[i]);
  const ordered = /\d/.test(first[2]), kind = first[2].at(-1), indent = first[1].length;
  const items = [];
  let end = i, loose = false;
  while (end < lines.length) {
    const m = marker.exec(lines[end]);
    if (!m || rule.test(lines[end]) || m[2].at(-1) !== kind || /\d/.test(m[2]) !== ordered || Math.abs(m[1].length - indent) > 1) break;
    const [item, next, gap] = itemAt(lines, end, m, depth);
    items.push(item);
    loose ||= gap && next < lines.length && marker.test(lines[next]);
    end = next;
  }
  return [{ type: "list", ordered, start: ordered ? parseInt(first[2], 10) : 1, loose, items }, end];
}

// itemAt reads an item: the lines that are indented at least as far as models indent what belongs
// to it, which is less than the standard asks for behind a number.
function itemAt(lines, i, m, depth) {
  const rest = lines[i].slice(m[0].length);
  const need = m[1].length + 2, most = m[0].length;
  const inner = [rest];
  let end = i + 1, gap = false;
  for (; end < lines.length; end++) {
    const line = lines[end], indent = line.length - line.trimStart().length;
    if (blank.test(line)) {
      gap = true;
    } else if (indent < need && (gap || begins(line) || marker.test(line))) {
      break;
    } else {
      gap = false;
    }
    inner.push(line.slice(Math.min(indent, most)));
  }
  const task = /^\[([ xX])\] /.exec(rest);
  if (task) inner[0] = rest.slice(4);
  const item = { type: "item", at: i, src: lines.slice(i, end).join("\n"), blocks: blocksOf(inner, depth + 1) };
  if (task) item.done = task[1] !== " ";
  return [item, end, gap];
}

function isTable(lines, i) {
  return i + 1 < lines.length && lines[i].includes("|") && lines[i + 1].includes("-") && divider.test(lines[i + 1]) &&
    cells(lines[i]).length === cells(lines[i + 1]).length;
}

function table(lines, i) {
  const align = cells(lines[i + 1]).map((c) => (c.endsWith(":") ? (c.startsWith(":") ? "center" : "right") : "left"));
  let end = i + 2;
  while (end < lines.length && !blank.test(lines[end]) && lines[end].includes("|")) end++;
  return [{ type: "table", align, head: cells(lines[i]), rows: lines.slice(i + 2, end).map(cells) }, end];
}

// cells splits a row at the bars that are neither escaped nor in code.
function cells(line) {
  const row = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  const out = [""];
  for (const [part] of row.matchAll(/\\.|`[^`]*`|\||[^\\`|]+|[\\`]/gs)) {
    if (part === "|") out.push("");
    else out[out.length - 1] += part === "\\|" ? "|" : part;
  }
  return out.map((c) => c.trim());
}
