// The place of a conversation on the ladder: which rung a length means, and a picture of the context.
"use strict";
const ladder = (() => {
  const { make } = markdown;
  const at = id => document.getElementById(id);
  const body = document.body.dataset;
  const context = Number(body.context), trained = Number(body.window), near = body.near === "yes";
  const rungs = body.rungs.split(";").map(text => {
    const [end, scale, border, factor] = text.split(",").map(Number);
    return { end, scale, border, factor };
  });
  const SVG = "http://www.w3.org/2000/svg";
  const number = n => n.toLocaleString("en");
  const short = x => Number(x.toPrecision(4));

  // Counts from 0; the last one for lengths that do not fit.
  const rungOf = length => Math.min(rungs.filter(r => r.end < length).length, rungs.length - 1);

  function shape(name, attributes, text = "") {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    return node;
  }
  const draw = (parent, ...what) => parent.append(shape(...what));

  // The tokens of a conversation by how their distance is seen from its end, first to last.
  function partsOf(length, rung) {
    const { border, factor, scale } = rungs[rung];
    if (near && border > 0) {
      const far = Math.min(border, length);
      return [{ kind: "far", size: far, seen: far / factor, text: "far: distance divided by " + short(factor) },
              { kind: "near", size: length - far, seen: length - far, text: "near: true distance" }];
    }
    if (scale === 1 && factor === 1) return [{ kind: "same", size: length, seen: length, text: "unmodified: as the model was trained" }];
    return [{ kind: "far", size: length, seen: length / factor, text: "rescaled: distance divided by up to " + short(factor) }];
  }

  const longest = Math.max(context, trained), wide = 420;
  const x = tokens => short(wide * Math.min(tokens, longest) / longest);

  // Where the plan changes.
  const steps = rungs.slice(0, -1).filter(({ scale, factor }, i) => scale !== rungs[i + 1].scale || factor !== rungs[i + 1].factor);

  // The context as a bar with the tokens in use, and a mark where the plan changes.
  function bar(svg, top, high, parts, length, planned) {
    draw(svg, "rect", { class: "free", x: 0.5, y: top + 0.5, width: x(context) - 1, height: high - 1, rx: 3 });
    let from = 0;
    for (const { kind, size } of parts) {
      draw(svg, "rect", { class: kind, x: x(from), y: top, width: x(size), height: high });
      from += size;
    }
    if (planned > length) draw(svg, "rect", { class: "planned", x: x(length), y: top, width: x(planned) - x(length), height: high });
    // Many of them would cover the bar with their marks.
    if (steps.length > 40) return;
    for (const { end } of steps) draw(svg, "line", { class: "step", x1: x(end), x2: x(end), y1: top, y2: top + high });
  }

  const box = (high, attributes) => shape("svg", { viewBox: "0 0 " + wide + " " + high, ...attributes });

  // Above, the bar; below, at the same scale and where that differs, how long the tokens seem to the model's
  // slowest pair, compared with the window that it was trained on.
  function picture(length, rung, planned, parts) {
    const high = 20, top = 18, below = 66, folds = length > 0 && parts[0].kind === "far";
    const svg = box(folds ? below + high + 18 : top + high, { role: "img", "aria-label":
      number(length) + " of " + number(context) + " tokens, rung " + (rung + 1) + " of " +
      rungs.length + ". " + parts.map(p => number(p.size) + " tokens " + p.text).join("; ") +
      ". Window of the model: " + number(trained) + " tokens." });
    draw(svg, "text", { x: 0, y: 12 }, "tokens of the conversation" + (steps.length === 1 ? "; the line: where compression begins" : ""));
    bar(svg, top, high, parts, length, planned);
    if (!folds) return svg;
    let from = 0, seemed = 0;
    for (const part of parts) {
      draw(svg, "polygon", { class: "fold " + part.kind, points:
        [[x(from), top + high], [x(from + part.size), top + high], [x(seemed + part.seen), below], [x(seemed), below]].join(" ") });
      draw(svg, "rect", { class: part.kind, x: x(seemed), y: below, width: x(part.seen), height: high });
      from += part.size;
      seemed += part.seen;
    }
    draw(svg, "rect", { class: "window", x: 0.5, y: below - 3.5, width: Math.max(1, x(trained) - 1), height: high + 7, rx: 3 });
    draw(svg, "text", { x: 0, y: below + high + 16 }, "as far as they seem to the model; box: its window, " + number(trained));
    return svg;
  }

  // where: {length, rung, scale}; planned: the length after what is about to be sent.
  function show(where, planned = 0) {
    const parts = partsOf(where.length, where.rung), used = number(where.length) + " of " + number(context) + " tokens";
    at("picture").replaceChildren(picture(where.length, where.rung, planned, parts));
    const strip = box(8, { "aria-hidden": "true", preserveAspectRatio: "none" });
    bar(strip, 0, 8, parts, where.length, planned);
    at("brief").replaceChildren(strip, used);
    at("legend").replaceChildren(...parts.concat(planned > where.length ?
      [{ kind: "planned", size: planned - where.length, text: "about to be sent" }] : [],
      { kind: "free", size: Math.max(0, context - Math.max(where.length, planned)), text: "free" }).filter(({ size }) => size > 0)
      .map(({ kind, size, text }) => make("li", "", [make("i", kind), number(size) + " " + text])));
    at("length").textContent = used;
    at("length").closest("div").hidden = !where.length;
    at("rung").textContent = where.rung + 1;
    at("rung").closest("div").hidden = rungs.length === 1;
    at("scale").textContent = short(where.scale);
    const rows = [...document.querySelectorAll("#ladder tbody tr")], now = rows.find(row => Number(row.dataset.rung) >= where.rung);
    for (const row of rows) {
      const here = row === now;
      // Only the table's own box is scrolled, never the page.
      if (here && !row.classList.contains("here")) {
        const table = row.closest(".scroll");
        table.scrollTop = Math.max(0, row.offsetTop - table.clientHeight / 2);
      }
      row.classList.toggle("here", here);
    }
  }

  // What a text of so many tokens means for a conversation of so many.
  function forecast(tokens, length) {
    const total = length + tokens, rung = rungOf(total);
    const share = 100 * tokens / context;
    const start = number(tokens) + " tokens, " + (share < 10 ? share.toFixed(1) : share.toFixed(0)) + " % of the context";
    if (total >= context) {
      return { fits: false, total, text: start + ": too long by at least " + number(total - context + 1) + " tokens" };
    }
    const { factor } = rungs[rung];
    return { fits: true, total, text: start + "; the conversation becomes " + number(total) + " tokens long, " +
      (factor === 1 ? "unmodified" : "compressed " + short(factor) + "x") };
  }

  const place = length => ({ length, rung: rungOf(length), scale: rungs[rungOf(length)].scale });
  return { show, forecast, place, context, number };
})();
