#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: it shows what was measured and is safe to open.

    python3 tests/browser/report_page_test.py MRROPE MODEL

Runs two small evaluations, opens their report in headless Chromium and checks it. Exit code 77
(skipped) where no Chromium is installed.
"""

import json
import pathlib
import subprocess
import tempfile
import unittest

import chromium
from page_case import HOSTILE, main
from serve_client import COMMAND, MODEL


def evaluate(command, model, folder):
    """A finished perplexity run, needles that contain markup, and an interrupted run."""
    def run(*arguments):
        subprocess.run([command, *arguments], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE)
    ppl, needle, half = folder / "ppl", folder / "needle", folder / "half"
    run("eval", "ppl", model, "--methods", "none,yarn,pro", "--lengths", "64,128,256", "--train-ctx",
        "128", "--samples", "2", "-o", str(ppl))
    run("eval", "needle", model, "--methods", "none,pro", "--lengths", "96,192", "--train-ctx",
        "128", "--depths", "0,50,100", "--form", "completion", "--needle",
        f"The sign reads {HOSTILE}.", "--question", "What does the sign read?", "--answer", HOSTILE,
        "-o", str(needle))
    half.mkdir()
    (half / "run.json").write_bytes((ppl / "run.json").read_bytes())
    lines = (ppl / "journal.jsonl").read_bytes().splitlines(True)
    (half / "journal.jsonl").write_bytes(b"".join(lines[:3]))
    return ppl, needle, half


class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="mrrope-report-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.ppl, cls.needle, cls.half = evaluate(COMMAND, MODEL, cls.folder)
        cls.report = cls.folder / "report.html"
        subprocess.run([COMMAND, "report", str(cls.ppl), str(cls.needle), str(cls.half),
                        str(cls.folder / "missing"), "-o", str(cls.report)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.page = chromium.Page()
        cls.page.open(cls.report)

    @classmethod
    def tearDownClass(cls):
        cls.page.close()

    def results(self, folder, **wanted):
        rows = json.loads((folder / "results.json").read_text())["results"]
        return [r for r in rows if all(r.get(k) == v for k, v in wanted.items())]

    def test_evaluations_write_a_report(self):
        for folder in (self.ppl, self.needle):
            self.assertIn("<!doctype html>", (folder / "report.html").read_text()[:20])

    def test_nothing_is_logged_or_thrown(self):
        self.assertEqual(self.page.log, [])
        self.assertEqual(self.page.thrown, [])

    def test_no_network_requests(self):
        outside = [u for u in self.page.requests if not u.startswith(("file:", "data:", "about:"))]
        self.assertEqual(outside, [])
        self.assertEqual([u for u in self.page.requests if u.startswith("file:")],
                         [self.report.resolve().as_uri()])

    def test_policy_blocks_other_scripts(self):
        self.assertLess(self.report.stat().st_size, 1_000_000)
        allowed = self.page.run("""(() => {
          window.ran = false;
          const s = document.createElement('script'); s.textContent = 'window.ran = true';
          document.body.append(s); s.remove(); return window.ran; })()""")
        self.assertFalse(allowed)
        self.page.log.clear()  # the refusal itself

    def test_charts_show_the_results(self):
        shown = json.loads(self.page.run("""JSON.stringify(
          [...document.querySelectorAll('.wide svg.lines')].map(s => [s.getAttribute('aria-label'),
            [...s.querySelectorAll('.series')].map(g => [g.dataset.name, g.dataset.values])]))"""))
        chart = dict(next(c for t, c in shown if "first N tokens" in t and "half" not in t))
        for method in ("none", "yarn", "pro"):
            points = [p.split(",") for p in chart[method].split(";")]
            rows = self.results(self.ppl, method=method, metric="perplexity")
            self.assertEqual([(int(float(x)), float(y)) for x, y, _, _ in points],
                             [(r["length"], r["value"]) for r in rows])
            for (_, y, low, high), row in zip(points, rows):
                self.assertAlmostEqual((float(high) - float(low)) / 2, row["stderr"], places=9)

    def test_heat_maps_show_the_results(self):
        cells = json.loads(self.page.run("""JSON.stringify(
          [...document.querySelectorAll('svg.heat')].map(s => [s.getAttribute('aria-label'),
            [...s.querySelectorAll('.cell')].map(c => Number(c.dataset.value))]))"""))
        for method in ("none", "pro"):
            rows = [r for r in self.results(self.needle, method=method, metric="rouge1_recall")
                    if "depth" in r]
            rows.sort(key=lambda r: (r["depth"], r["length"]))
            shown = next(values for title, values in cells if title == method)
            self.assertEqual(shown, [r["value"] for r in rows])

    def test_every_chart_has_a_table_and_a_download(self):
        figures = self.page.run("document.querySelectorAll('figure').length")
        self.assertGreaterEqual(figures, 4)
        self.assertEqual(self.page.run("document.querySelectorAll('figure table').length"), figures)
        links = self.page.run("""[...document.querySelectorAll('figure a[download]')].map(
          a => decodeURIComponent(a.href.slice(a.href.indexOf(',') + 1)))""")
        self.assertEqual(len(links), figures)
        value = self.results(self.ppl, method="pro", metric="perplexity", length=256)[0]["value"]
        self.assertTrue(any(f"{value:.6g}" in text for text in links))

    def test_text_is_escaped(self):
        self.assertEqual(self.page.run("document.title"), "mrrope report")
        self.assertEqual(self.page.run("document.querySelectorAll('img').length"), 0)
        self.assertIn(HOSTILE, self.page.run("document.body.textContent"))

    def test_unfinished_and_missing_runs_are_marked(self):
        text = self.page.run("document.querySelector('main').innerText")
        self.assertIn("not finished: 2 of 6 units", text)
        self.assertIn("could not be read", text)
        self.assertIn("missing", text)

    def test_verdict_comes_first(self):
        first = self.page.run("document.querySelector('main h1').innerText")
        self.assertRegex(first, r"holds to|No method holds|no method holds|verdict")

    def test_values_appear_under_the_pointer(self):
        box = json.loads(self.page.run("""(() => {
          const s = document.querySelector('.wide svg.lines'); s.scrollIntoView({block: 'center'});
          const r = s.getBoundingClientRect(); return JSON.stringify([r.x, r.y, r.width, r.height]);
          })()"""))
        self.page.move(box[0] + box[2] * 0.5, box[1] + box[3] * 0.5)
        tip = self.page.run("document.getElementById('tip').innerText")
        self.assertEqual(self.page.run("document.getElementById('tip').style.visibility"), "visible")
        value = self.results(self.ppl, method="pro", metric="perplexity", length=128)[0]["value"]
        self.assertIn("pro: " + format(value, ".4g"), tip)
        self.assertIn("\u00b1", tip)
        self.page.move(2, 2)
        self.assertEqual(self.page.run("document.getElementById('tip').style.visibility"), "hidden")

    def test_values_appear_by_keyboard(self):
        self.page.run("document.querySelector('svg.heat').focus()")
        self.page.key("ArrowRight")
        self.page.key("ArrowDown")
        tip = self.page.run("document.getElementById('tip').innerText")
        self.assertIn("depth 50 %", tip)
        self.page.key("Escape")
        self.page.run("document.querySelector('.wide svg.lines').focus()")
        self.page.key("ArrowLeft")
        self.assertIn("256", self.page.run("document.getElementById('tip').innerText"))

    def test_light_and_dark(self):
        background = "getComputedStyle(document.body).backgroundColor"
        self.page.theme("light")
        light = self.page.run(background)
        self.page.theme("dark")
        dark = self.page.run(background)
        self.assertEqual(light, "rgb(255, 255, 255)")
        self.assertNotEqual(light, dark)
        for expected in (light, dark, dark):  # light, dark, auto (which is dark here)
            self.page.run("document.getElementById('theme').click()")
            self.assertEqual(self.page.run(background), expected)
        self.page.theme("light")

    def test_text_has_enough_contrast(self):
        self.assertEqual(self.page.faint_texts("main *, header *, footer"), {"light": "", "dark": ""})

    def test_the_picture_of_the_headline_has_the_whole_width(self):
        self.assertEqual(self.page.run("document.querySelector('h1').nextElementSibling.className"), "full")
        for width in (400, 800, 1400):
            self.page.resize(width, 900)
            widths = self.page.run("""['.verdict .full', 'main'].map(s => {
              const e = document.querySelector(s);
              const svg = [...e.querySelectorAll('svg')].find(c => c.getClientRects().length);
              return (s === 'main' ? e : svg).getBoundingClientRect().width; })""")
            self.assertGreater(widths[0], 0.98 * widths[1])
        self.page.resize(1400, 900)

    def test_every_figure_says_what_to_see(self):
        notes = self.page.run("""[...document.querySelectorAll('figure')].map(
          f => f.querySelector('.see')?.textContent || '')""")
        self.assertNotIn("", notes)

    def test_names_and_ticks_do_not_overlap(self):
        script = """[...document.querySelectorAll('svg.lines')].flatMap(svg => {
          const texts = [...svg.querySelectorAll('text')].filter(t => t.getClientRects().length);
          const boxes = texts.map(t => t.getBoundingClientRect());
          return texts.flatMap((t, i) => texts.slice(0, i).filter((_, k) =>
            boxes[i].left < boxes[k].right - 2 && boxes[k].left < boxes[i].right - 2 &&
            boxes[i].top < boxes[k].bottom - 3 && boxes[k].top < boxes[i].bottom - 3).map(
            o => svg.getAttribute('aria-label') + ': ' + t.textContent + ' on ' + o.textContent)); })"""
        for width in (400, 800, 1400):
            self.page.resize(width, 900)
            self.assertEqual(self.page.run(script), [], width)
        self.page.resize(1400, 900)

    def test_long_names_of_methods_are_wrapped(self):
        recorded = self.folder / "recorded.html"
        subprocess.run([COMMAND, "report", pathlib.Path(__file__).resolve().parents[2] / "data/runs/smollm2-135m",
                        "-o", str(recorded)], check=True, capture_output=True)
        page = chromium.Page()
        self.addCleanup(page.close)
        page.open(recorded)
        for width in (400, 800, 1400):
            page.resize(width, 900)
            self.assertLessEqual(page.run("document.documentElement.scrollWidth"), width)

    def test_narrow_pages_do_not_scroll_sideways(self):
        for width in (400, 800, 1400):
            self.page.resize(width, 900)
            self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)
            shown = self.page.run("""[...document.querySelectorAll('svg.lines')].filter(
              s => s.getClientRects().length).length""")
            self.assertEqual(shown, self.page.run("document.querySelectorAll('.wide').length"))
        self.page.resize(1400, 900)

    def test_heat_maps_are_not_stretched(self):
        widths = self.page.run("""[...document.querySelectorAll('svg.heat')].filter(
          s => s.getClientRects().length).map(
          s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)""")
        self.assertGreater(len(widths), 0)
        self.assertLess(max(widths), 1.01)


if __name__ == "__main__":
    main()
