// The page works without this: it adds values under the pointer, the keyboard and the theme.
"use strict";
(() => {
  const tip = document.getElementById("tip");
  const root = document.documentElement;
  const SVG = "http://www.w3.org/2000/svg";

  const button = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    button.textContent = "Theme: " + next;
  });

  const text = v => {
    const size = Math.abs(v);
    if (v === 0 || (size >= 1e-4 && size < 1e7)) return String(Number(v.toPrecision(size >= 1e4 ? 7 : 4)));
    return v.toExponential(3);
  };
  const tokens = v => v > 0 && v % 1048576 === 0 ? v / 1048576 + "m" : v > 0 && v % 1024 === 0 ? v / 1024 + "k" : text(v);

  function show(x, y, content) {
    tip.textContent = content;
    tip.style.visibility = "visible";
    const width = tip.offsetWidth, left = Math.min(x + 14, scrollX + root.clientWidth - width - 8);
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = Math.max(scrollY + 4, y - tip.offsetHeight - 12) + "px";
  }
  function hide() { tip.style.visibility = "hidden"; }

  function lines(svg) {
    const cursor = svg.querySelector(".cursor");
    const frame = cursor.dataset.frame.split(",").map(Number);
    const series = [...svg.querySelectorAll(".series")].map(g => ({
      name: g.dataset.name,
      colour: getComputedStyle(g).color,
      group: g,
      points: g.dataset.values.split(";").filter(Boolean).map((v, i) => {
        const [x, y, low, high] = v.split(",").map(f => f === "" ? NaN : Number(f));
        const [px, py] = g.dataset.places.split(";")[i].split(",").map(f => f === "" ? NaN : Number(f));
        return { x, y, low, high, px, py };
      }).filter(p => !isNaN(p.py))
    })).filter(s => s.points.length > 0);
    const places = [...new Set(series.flatMap(s => s.points.map(p => p.px)))].sort((a, b) => a - b);
    let at = -1;

    function clear() { cursor.replaceChildren(); hide(); }
    function select(index) {
      if (places.length === 0) return;
      at = Math.max(0, Math.min(places.length - 1, index));
      const target = places[at];
      cursor.replaceChildren();
      const line = document.createElementNS(SVG, "line");
      for (const [k, v] of [["x1", target], ["x2", target], ["y1", frame[1]], ["y2", frame[3]]]) line.setAttribute(k, v);
      cursor.append(line);
      const found = [];
      for (const s of series) {
        const p = s.points.reduce((a, b) => Math.abs(b.px - target) < Math.abs(a.px - target) ? b : a);
        if (Math.abs(p.px - target) > 2) continue;
        found.push([s, p]);
        const dot = document.createElementNS(SVG, "circle");
        dot.setAttribute("class", s.group.getAttribute("class").replace("series ", ""));
        for (const [k, v] of [["cx", p.px], ["cy", p.py], ["r", 4]]) dot.setAttribute(k, v);
        cursor.append(dot);
      }
      found.sort((a, b) => a[1].py - b[1].py);
      const x = found[0][1].x;
      const head = (svg.dataset.tokens ? tokens(x) : text(x)) + (svg.dataset.xLabel ? " (" + svg.dataset.xLabel + ")" : "");
      const rows = found.map(([s, p]) => s.name + ": " + text(p.y) +
        (isNaN(p.low) || isNaN(p.high) ? "" : " \u00b1 " + text((p.high - p.low) / 2)));
      const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
      show(scrollX + box.left + target * scale, scrollY + box.top + found[0][1].py * scale, [head, ...rows].join("\n"));
    }
    svg.addEventListener("pointermove", e => {
      const box = svg.getBoundingClientRect();
      const x = (e.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
      let best = 0;
      places.forEach((p, i) => { if (Math.abs(p - x) < Math.abs(places[best] - x)) best = i; });
      select(best);
    });
    svg.addEventListener("pointerleave", clear);
    svg.addEventListener("blur", clear);
    svg.addEventListener("keydown", e => {
      if (e.key === "ArrowRight") select(at + 1);
      else if (e.key === "ArrowLeft") select(at < 0 ? places.length : at - 1);
      else if (e.key === "Escape") return clear();
      else return;
      e.preventDefault();
    });
  }

  function heat(svg) {
    const cells = [...svg.querySelectorAll(".cell")];
    const columns = new Set(cells.map(c => c.dataset.column)).size;
    let at = -1;
    function clear() { cells.forEach(c => c.classList.remove("here")); hide(); }
    function select(index) {
      if (index < 0 || index >= cells.length) return;
      clear();
      at = index;
      cells[at].classList.add("here");
      const box = cells[at].getBoundingClientRect();
      show(scrollX + box.right - 10, scrollY + box.top, cells[at].dataset.detail);
    }
    cells.forEach((c, i) => c.addEventListener("pointerenter", () => select(i)));
    svg.addEventListener("pointerleave", clear);
    svg.addEventListener("blur", clear);
    svg.addEventListener("keydown", e => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[e.key];
      if (e.key === "Escape") return clear();
      if (!step) return;
      select(at < 0 ? 0 : at + step);
      e.preventDefault();
    });
  }

  document.querySelectorAll("svg.lines").forEach(lines);
  document.querySelectorAll("svg.heat").forEach(heat);
})();
