// Markdown as models write it, made into nodes. An answer may come from anyone: nothing here turns text
// into markup, links lead to the web or to mail alone, and every step takes time in proportion to the text
// (no pattern that backtracks, bounded depth), since a line may have any length.
"use strict";
const markdown = (() => {
  const DEEPEST = 12;    // of lists and quotes; further ones are shown as they were written
  const OPENED = 32;     // marks of emphasis that wait for their end
  const COLUMNS = 64;    // of a table
  const LINK = 2000;     // characters of an address

  // One child after the other: a paragraph may have more of them than a call may have arguments.
  const make = (name, kind = "", children = [], attributes = {}) => {
    const node = document.createElement(name);
    if (kind) node.className = kind;
    for (const child of [].concat(children)) node.append(child);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };

  // The address if it is one that cannot run anything, otherwise null.
  function safeAddress(text) {
    if (text.length > LINK) return null;
    try {
      const { protocol, href } = new URL(text);
      return ["http:", "https:", "mailto:"].includes(protocol) ? href : null;
    } catch {
      return null;  // relative ones too: there is nothing they could be relative to
    }
  }

  // It shows its address too: the text of a link may claim to be another one.
  const link = (href, children) => make("a", "", children, { href, title: href, target: "_blank", rel: "noopener noreferrer" });

  // For every run of backticks the place of the next run of the same length.
  function codeEnds(text) {
    const ends = new Map(), last = new Map();
    for (const { 0: { length }, index } of text.matchAll(/`+/g)) {
      if (last.has(length)) ends.set(last.get(length), index);
      last.set(length, index);
    }
    return ends;
  }

  const runLength = (text, at) => {
    let end = at + 1;
    while (text[end] === text[at]) ++end;
    return end - at;
  };
  const isSpace = c => c === undefined || c === "" || /\s/.test(c);
  const isWord = c => c !== undefined && /[\p{L}\p{N}_]/u.test(c);
  const special = /[\\`*_~[\]]|https?:\/\//g;
  const webAddress = /https?:\/\/[^\s<>"'`]{1,2000}/y;
  const target = /\(\s{0,9}<?([^\s<>()]{1,2000}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,200}){0,4})>?(?:\s{1,9}"[^"]{0,400}")?\s{0,9}\)/y;
  const bare = "*_`~#>|";  // a backslash before these is dropped; before others it is LaTeX more often

  // Emphasis, code and links of one paragraph: a list of texts and nodes. A mark that opens something stays in
  // the list until its end is found; what was written in between then moves into one node.
  function inline(text) {
    const out = [], open = [];  // open: {mark, at} with the place in out
    const ends = text.includes("`") ? codeEnds(text) : null;
    let at = 0, joins = false;  // joins: the last of out is text that more can be added to
    const put = (more, isText = true) => {
      if (joins && isText) out[out.length - 1] += more;
      else out.push(more);
      joins = isText;
    };
    const putMark = mark => {
      if (open.length === OPENED) open.shift();
      open.push({ mark, at: out.length });
      put(mark, false);
    };
    const wrap = (from, node) => {
      joins = false;
      for (const child of out.splice(from + 1)) node.append(child);
      out[from] = node;
    };
    while (at < text.length) {
      special.lastIndex = at;
      const found = special.exec(text);
      const place = found ? found.index : text.length;
      if (place > at) put(text.slice(at, place));
      if (!found) break;
      at = place;
      const c = text[at];
      if (c === "\\") {
        const next = text[at + 1] ?? "";
        put(bare.includes(next) ? next : c + next);
        at += 1 + next.length;
      } else if (c === "`") {
        const size = runLength(text, at), end = ends.get(at);
        if (end === undefined) {
          put(text.slice(at, at += size));
          continue;
        }
        const inside = text.slice(at + size, end).replaceAll("\n", " ");
        const padded = inside.length > 2 && inside.startsWith(" ") && inside.endsWith(" ");
        put(make("code", "", padded ? inside.slice(1, -1) : inside), false);
        at = end + size;
      } else if (c === "h") {
        webAddress.lastIndex = at;
        const raw = isWord(text[at - 1]) ? null : webAddress.exec(text)?.[0];
        let end = raw ? raw.length : 0;
        while (end > 0 && ".,;:!?*_~]".includes(raw[end - 1]) ||
               (end > 0 && raw[end - 1] === ")" && !raw.includes("("))) --end;
        const href = end > 8 && !open.some(o => o.mark === "[") ? safeAddress(raw.slice(0, end)) : null;
        const shown = href ? raw.slice(0, end) : "http";
        put(href ? link(href, [shown]) : shown, !href);
        at += shown.length;
      } else if (c === "[") {
        putMark("[");
        ++at;
      } else if (c === "]") {
        const from = open.findLastIndex(o => o.mark === "[");
        target.lastIndex = at + 1;
        const address = from >= 0 && text[at + 1] === "(" ? target.exec(text) : null;
        const href = address ? safeAddress(address[1]) : null;
        if (from >= 0) {
          const start = open[from].at;
          open.length = from;
          if (href) {
            const picture = typeof out[start - 1] === "string" && out[start - 1].endsWith("!");
            if (picture) out[start - 1] = out[start - 1].slice(0, -1);  // pictures are links: nothing is loaded
            wrap(start, link(href, []));
            if (!out[start].textContent) out[start].textContent = href;
            at = target.lastIndex;
            continue;
          }
        }
        put("]");
        ++at;
      } else {
        // * ** *** and the same of _, and ~~; longer runs mean nothing.
        const run = runLength(text, at);
        if (run > 3) {
          put(text.slice(at, at += run));
          continue;
        }
        const size = run === 3 && open.at(-1)?.mark === c ? 1 : Math.min(run, 2);
        const mark = c.repeat(size), before = text[at - 1], after = text[at + size];
        const inWord = c === "_";
        const closes = !isSpace(before) && !(inWord && isWord(after));
        const opens = !isSpace(after) && !(inWord && isWord(before));
        const from = closes ? open.findLastIndex(o => o.mark === mark) : -1;
        at += size;
        if (mark !== "~" && from >= 0 && open[from].at < out.length - 1) {
          const start = open[from].at;
          open.length = from;
          wrap(start, make(c === "~" ? "s" : size === 2 ? "strong" : "em"));
        } else if (mark !== "~" && opens) {
          putMark(mark);
        } else {
          put(mark);
        }
      }
    }
    return out;
  }

  const indentOf = line => /^ */.exec(line)[0].length;
  const isBlank = line => line.length < 1000 ? line.trim() === "" : false;
  const isRule = line => line.length < 200 && /^(-{3,}|\*{3,}|_{3,})$/.test(line.replaceAll(" ", ""));
  const headingOf = line => /^ {0,3}(#{1,6})(?:[ \t]|$)/.exec(line);
  const itemOf = line => isRule(line) ? null : /^( *)([-*+]|\d{1,9}[.)])(?: {1,9}(?=[^ ])|\t| *$)/.exec(line);
  const fenceOf = line => /^ {0,3}(`{3,}|~{3,})([^`]*)$/.exec(line);
  const isQuote = line => /^ {0,3}>/.test(line);

  function cellsOf(line) {
    const cells = [];
    let cell = "", at = 0;
    line = line.trim();
    if (line[0] === "|") at = 1;
    for (let code = false; at < line.length; ++at) {
      if (line[at] === "`") code = !code;
      if (line[at] === "\\" && line[at + 1] === "|") cell += line[++at];
      else if (line[at] === "|" && !code) cells.push(cell.trim()), cell = "";
      else cell += line[at];
    }
    if (cell.trim() || line[line.length - 1] !== "|") cells.push(cell.trim());
    return cells;
  }

  // The sides of the columns if the line is the one below a table's head.
  function sidesOf(head, line) {
    if (line === undefined || line.length > 4000 || !head.includes("|") || !/^[\s|:-]+$/.test(line)) return null;
    const cells = cellsOf(line);
    if (cells.length > COLUMNS || !cells.every(c => /^:?-+:?$/.test(c)) || cellsOf(head).length !== cells.length) return null;
    return cells.map(c => c.endsWith(":") ? (c.startsWith(":") ? "middle" : "right") : "");
  }

  const startsBlock = (line, next) => isRule(line) || headingOf(line) || fenceOf(line) || isQuote(line) ||
    itemOf(line) || sidesOf(line, next);

  // The block that begins at line `at`: its node, and the line after it.
  function blockAt(lines, at, depth) {
    const line = lines[at];
    const fence = fenceOf(line);
    if (fence) {
      const [, marks, info] = fence, indent = indentOf(line);
      let end = at + 1;
      const closes = l => indentOf(l) < 4 && l.trim().length >= marks.length && l.trim() === marks[0].repeat(l.trim().length);
      while (end < lines.length && !closes(lines[end])) ++end;
      const code = lines.slice(at + 1, end).map(l => l.slice(Math.min(indent, indentOf(l)))).join("\n");
      const language = info.trim().split(" ", 1)[0].slice(0, 40) || "code";
      return [codeNode(code, language), Math.min(end + 1, lines.length)];
    }
    if (isRule(line)) return [make("hr"), at + 1];
    const heading = headingOf(line);
    if (heading) {
      let text = line.slice(heading[0].length).trim(), last = text.length;
      while (last > 0 && text[last - 1] === "#") --last;
      if (last === 0 || text[last - 1] === " ") text = text.slice(0, last).trim();
      // The page has headings of its own above these.
      return [make("h" + Math.min(heading[1].length + 3, 6), "", inline(text)), at + 1];
    }
    let end = at;
    if (isQuote(line)) {
      const inside = [];
      for (; end < lines.length && isQuote(lines[end]); ++end) inside.push(lines[end].trimStart().slice(1).replace(/^ /, ""));
      return [make("blockquote", "", nodesOf(inside, depth + 1)), end];
    }
    const item = itemOf(line);
    if (item) return listAt(lines, at, item, depth);
    const sides = sidesOf(line, lines[at + 1]);
    if (sides) {
      const rows = [];
      for (end += 2; end < lines.length && lines[end].includes("|") && !isBlank(lines[end]); ++end) {
        rows.push(cellsOf(lines[end]).slice(0, sides.length));
      }
      return [tableNode(cellsOf(line), rows, sides), end];
    }
    do ++end; while (end < lines.length && !isBlank(lines[end]) && !startsBlock(lines[end], lines[end + 1]));
    return [make("p", "", inline(lines.slice(at, end).join("\n"))), end];
  }

  const afterBlanks = (lines, at) => {
    while (at < lines.length && isBlank(lines[at])) ++at;
    return at;
  };

  function listAt(lines, at, first, depth) {
    const indent = first[1].length, ordered = /\d/.test(first[2]), mark = first[2].at(-1);
    const items = [];
    let end = at;
    while (end < lines.length) {
      const item = itemOf(lines[end]);
      if (!item || item[1].length > indent + 1 || item[2].at(-1) !== mark) break;
      if (items.length && item[1].length < indent) break;
      const inner = item[0].length, inside = [lines[end].slice(inner)];
      // Lines of the item: indented ones, and those that continue its paragraph.
      for (++end; end < lines.length; ++end) {
        const line = lines[end];
        if (isBlank(line)) {
          const next = afterBlanks(lines, end);
          if (next === lines.length || indentOf(lines[next]) < indent + 2) break;
          for (; end < next; ++end) inside.push("");
        } else if (indentOf(line) < indent + 2 && startsBlock(line, lines[end + 1])) {
          break;
        }
        inside.push(lines[end].slice(Math.min(inner, indentOf(lines[end]))));
      }
      items.push(inside);
      // A list goes on after blank lines if an item follows them.
      const next = afterBlanks(lines, end);
      if (next < lines.length && itemOf(lines[next])) end = next;
    }
    const list = make(ordered ? "ol" : "ul", "", items.map(item => make("li", "", nodesOf(item, depth + 1))));
    if (ordered && parseInt(first[2], 10) !== 1) list.start = parseInt(first[2], 10);
    return [list, end];
  }

  function codeNode(text, language) {
    const copy = make("button", "copy", "Copy", { type: "button", "aria-label": "Copy the code" });
    const pre = make("pre", "", make("code", "", text), { tabindex: 0, "aria-label": "Code" });
    return make("div", "code", [make("div", "codebar", [make("span", "", language), copy]), pre]);
  }

  function tableNode(head, rows, sides) {
    const row = (cells, name) => make("tr", "", cells.map((c, i) => make(name, sides[i], inline(c))));
    const table = make("table", "", [make("thead", "", row(head, "th")), make("tbody", "", rows.map(r => row(r, "td")))]);
    return make("div", "wide-table", table, { tabindex: 0, role: "region", "aria-label": "Table" });
  }

  function nodesOf(lines, depth) {
    if (depth > DEEPEST) return [make("p", "", lines.join("\n"))];
    const nodes = [];
    for (let at = afterBlanks(lines, 0); at < lines.length;) {
      const [node, end] = blockAt(lines, at, depth);
      nodes.push(node);
      at = afterBlanks(lines, end);
    }
    return nodes;
  }

  // Tabs count as four spaces before the mark of a list; elsewhere, as in code, they stay.
  const linesOf = text => text.replaceAll("\r\n", "\n").split("\n").map(line =>
    line[0] === "\t" && /^\t{1,9}([-*+]|\d{1,9}[.)]) /.test(line) ? line.replace(/^\t+/, tabs => "    ".repeat(tabs.length)) : line);

  // Draws a text that grows. What has not changed stays in place, with whatever is selected there.
  function draw(box, text) {
    let old = box.firstChild;
    for (const node of nodesOf(linesOf(text), 0)) {
      const next = old?.nextSibling ?? null;
      if (!old) box.append(node);
      else if (old.matches(".code") && node.matches(".code")) {  // keeps how far it is scrolled
        for (const part of ["code", "span"]) old.querySelector(part).textContent = node.querySelector(part).textContent;
      } else if (!old.isEqualNode(node)) old.replaceWith(node);
      old = next;
    }
    for (let next; old; old = next) {
      next = old.nextSibling;
      old.remove();
    }
  }

  return { draw, make };
})();
