#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server's page in a real browser: markdown, themes, keyboard.

    python3 tests/browser/serve_layout_test.py MRROPE MODEL
"""

import json
import time

from page_case import HOSTILE, LONG, MARKDOWN, PageCase, chat_server, main


class Markdown(PageCase):
    def test_what_models_write(self):
        self.answer(*[MARKDOWN[i:i + 7] for i in range(0, len(MARKDOWN), 7)])
        body = ".said.model .text "
        self.assertEqual(self.texts(body + "h4"), ["A plan"])
        self.assertEqual(self.texts(body + "strong"), ["bold", "both", "one"])
        self.assertEqual(self.texts(body + "em"), ["italic", "both"])
        self.assertEqual(self.texts(body + "s"), ["gone"])
        self.assertEqual(self.texts(body + "p > code"), ["code with <b>"])
        self.assertIn("snake_case_name and 2 * 3 * 4 stay", self.texts(body + "p")[0])
        self.assertEqual(self.count(body + "> ol > li"), 2)
        self.assertEqual(self.texts(body + "ol ul li"), ["inner one", "inner two"])
        self.assertEqual(self.texts(body + "> ol > li:nth-child(2) p"), ["second", "more of it"])
        self.assertEqual(self.texts(body + "th"), ["name", "size"])
        self.assertEqual(self.texts(body + "td"), ["a", "1 | 2", "b | c", "22"])
        self.assertEqual(self.texts(body + "blockquote"), ["quoted\ntext"])
        self.assertEqual(self.texts(body + "pre"), ["int main() {\n\treturn 0;  // **not bold**\n}"])
        self.assertEqual(self.texts(body + ".codebar span"), ["cpp"])
        links = self.page.run("[...document.querySelectorAll('.said.model a')].map(a => [a.href, a.textContent, a.rel, a.target])")
        self.assertEqual(links, [["https://example.org/a_(b)?c=d_e", "the site", "noopener noreferrer", "_blank"],
                                 ["https://example.org/plain_page", "https://example.org/plain_page", "noopener noreferrer", "_blank"]])
        self.assertEqual(self.count(body + "hr"), 1)

    def test_it_is_the_same_however_it_arrives(self):
        whole = "document.querySelector('.said.model:last-child .text').innerHTML"
        self.answer(MARKDOWN)
        expected = self.page.run(whole)
        self.answer(*MARKDOWN)
        self.assertEqual(self.page.run(whole), expected)

    def test_copy_buttons(self):
        self.page.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        self.answer(MARKDOWN)
        self.click(".codebar .copy")
        self.wait("document.querySelector('.codebar .copy').textContent === 'Copied'", "no word of the copy")
        self.assertEqual(self.page.run("navigator.clipboard.readText()"), "int main() {\n\treturn 0;  // **not bold**\n}")
        self.press("Copy")
        self.wait("document.querySelector('.actions .copy, .said.model .actions button').textContent === 'Copied'", "no word")
        self.assertEqual(self.page.run("navigator.clipboard.readText()"), MARKDOWN)

    def safe(self):
        """Nothing but the elements that answers are made of, and no address but those of the web."""
        wrong = self.page.run("""(() => {
          const known = 'P H4 H5 H6 UL OL LI STRONG EM S CODE PRE A BLOCKQUOTE HR TABLE THEAD TBODY TR TH TD DIV SPAN BUTTON'.split(' ');
          const names = 'class tabindex role aria-label href title target rel type start data-text'.split(' ');
          const bad = [];
          for (const e of document.querySelectorAll('.said.model .text *')) {
            if (!known.includes(e.tagName)) bad.push(e.tagName);
            for (const a of e.attributes) if (!names.includes(a.name)) bad.push(a.name);
            if (e.href && !/^(https?|mailto):/.test(e.href)) bad.push(e.href);
          }
          return bad; })()""")
        self.assertEqual(wrong, [])
        self.assertNotEqual(self.page.run("document.title"), "owned")
        self.assertEqual(self.page.log, [])
        self.assertEqual(self.page.thrown, [])

    def test_markup_and_script_stay_text(self):
        hostile = "\n\n".join([
            HOSTILE, "<script>document.title='owned'</script>", "<svg/onload=document.title='owned'>",
            "[a](javascript:document.title='owned')", "[b](JaVaScRiPt:alert(1))", "[c](java\tscript:alert(1))",
            "[d](data:text/html,<script>alert(1)</script>)", "[e](vbscript:x)", "[f](file:///etc/passwd)",
            "[g](//example.org/x)", "[h](/props)", "![i](https://example.org/picture.png)",
            "[j](https://example.org/\"onclick=\"alert(1))", "<javascript:alert(1)>", "[k](&#106;avascript:alert(1))",
            "[[l](javascript:alert(1))](https://example.org/)", "```\"><script>x\n" + HOSTILE + "\n```",
            "| " + HOSTILE + " | b |\n|---|---|\n| [x](javascript:1) | <b>y</b> |", "# " + HOSTILE])
        self.answer(hostile)
        self.safe()
        self.assertEqual(self.count(".said.model img, .said.model script, .said.model svg"), 0)
        self.assertIn(HOSTILE, self.answers()[0])
        self.assertEqual(self.page.run("[...document.querySelectorAll('.said.model a')].map(a => new URL(a.href).host)"),
                         ["example.org"] * self.count(".said.model a"))
        self.assertIn("javascript:document.title", self.answers()[0])  # as text
        for url in self.page.requests:
            self.assertTrue(url.startswith((self.scripted.address + "/", "data:")), url)

    def test_huge_nesting_and_long_lines_take_no_time(self):
        size = 200_000
        lines = {
            "words": "word " * (size // 5), "one word": "x" * size, "stars": "*" * size, "emphasis": "*a " * (size // 3),
            "both ends": "*a* " * (size // 4), "nested emphasis": "*a_b" * (size // 4), "bold": "**a" * (size // 3),
            "brackets": "[" * size, "links": "[a](" * (size // 4), "good links": "[a](http://b.example) " * (size // 22),
            "half links": "](a \"" * (size // 5), "backticks": "` `` ``` " * (size // 9), "code": "`a`" * (size // 3),
            "ticks": "`" * size, "quotes": ">" * size, "list in a line": "- + " * (size // 4), "spaces": " " * size + "x",
            "heading": "# a" + "#" * size, "heading of spaces": "# a" + " " * size + "b", "rule": "- " * (size // 2) + "x",
            "cells": "|" * size + "\n" + "|-" * (size // 2), "delimiters": "a|b\n" + "-" * size + "x",
            "addresses": "http://[" * (size // 8), "addresses and words": "xhttp://" * (size // 8), "escapes": "\\*" * (size // 2),
            "rows": "|a|\n|-|\n" + "|\n" * (size // 2), "quote lines": "> a\n" * (size // 4), "items": "- a\n" * (size // 4),
            "deep list": "\n".join(" " * (2 * i) + "- a" for i in range(440)), "blank": "a\n\n" * (size // 20),
            "deep quotes": "\n".join("> " * i + "a" for i in range(440)), "fences": "```\n" * (size // 40),
            "lazy": "- a\n" + "b\n" * (size // 4), "tildes": "~~a" * (size // 3), "underscores": "_a_" * (size // 3),
        }
        # Time of the processor: other work on the machine does not count.
        self.page.call("Performance.enable", timeDomain="threadTicks")

        def seconds():
            return {m["name"]: m["value"] for m in self.page.call("Performance.getMetrics")["metrics"]}["ThreadTime"]

        for name, line in lines.items():
            with self.subTest(name):
                before = seconds()
                deepest, length = self.page.run("""(text => {
                  const box = document.createElement('div');
                  markdown.draw(box, text.slice(0, text.length / 2));
                  markdown.draw(box, text);
                  const walker = document.createTreeWalker(box);
                  let deepest = 0;
                  for (let depth = 0, node = box; node;) {
                    deepest = Math.max(deepest, depth);
                    if (walker.firstChild()) ++depth;
                    else while (!walker.nextSibling()) if (--depth < 0 || !walker.parentNode()) break;
                    node = depth > 0 ? walker.currentNode : null;
                  }
                  return [deepest, box.textContent.length]; })(%s)""" % json.dumps(line))
                taken = seconds() - before
                self.assertGreater(taken, 0)
                self.assertLess(taken, 5)
                self.assertLess(deepest, 64)
                self.assertGreater(length, 0)

    def test_a_long_line_on_the_page(self):
        for line in ("word *a* " * 20_000, "x" * 200_000):
            started = time.monotonic()
            self.answer(*[line[i:i + 20_000] for i in range(0, len(line), 20_000)])
            self.assertLess(time.monotonic() - started, 30)
            self.assertLessEqual(self.page.run("log.scrollWidth"), self.page.run("log.clientWidth"))
            self.safe()


class Layout(PageCase):
    def test_the_title_says_what_happens_to_the_context(self):
        # Far tokens: 3840 (the last border) / 512 (what the near part leaves).
        self.assertEqual(self.texts("h1"), ["chatty, 4K context: unmodified to 1K, then compressed 9.4x"])
        self.assertEqual(self.page.run("document.title"), "chatty, 4K context - mrrope")

    def test_the_plan_is_behind_a_button_without_repetition(self):
        self.assertFalse(self.shown("#ladder"))
        self.click("#details summary")
        self.assertTrue(self.shown("#ladder"))
        rows = self.page.run("[...document.querySelectorAll('#ladder tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
        scales = [row[1] for row in rows]
        self.assertEqual([rows[0], rows[-1]], [["up to 1024", "1x"], ["up to 4096", "9.389x"]])
        self.assertEqual(len(set(scales)), len(scales))
        self.assertLess(len(rows), len(self.page.run("document.body.dataset.rungs.split(';')")))
        self.click("#details .terms summary")
        words = dict(zip(self.texts("#details .terms dt"), self.texts("#details .terms dd"), strict=True))
        self.assertIn("near part, far part", words)
        self.assertIn("each of these is a rung", words["elastic, rung"])

    def test_a_message_stands_on_the_right(self):
        self.say("Hello", 4)
        you, model, log = (self.page.run(f"(r => [r.left, r.right])(document.querySelector('{s}').getBoundingClientRect())")
                           for s in (".said.you", ".said.model", "#log"))
        self.assertAlmostEqual(you[1], model[1], delta=1)
        self.assertGreater(you[0], model[0] + (log[1] - log[0]) / 4)

    def test_a_long_title_ends_with_dots(self):
        self.say("The river and the mill, " * 10, 2)
        self.assertRegex(self.page.run("document.querySelector('#chats option').textContent"), r"^The river.{51}\.\.\.$")

    def test_a_plan_with_a_temperature_shows_it(self):
        with chat_server(self.folder.name, "--method", "yarn") as server:
            self.open(server.address)
            self.assertEqual(self.texts("#ladder thead th"), ["tokens", "scale", "attention scale"])
            self.assertFalse(self.shown("#rung"))

    def test_a_model_inside_its_window_has_no_plan(self):
        with chat_server(self.folder.name, ctx=1024) as server:
            self.open(server.address)
            self.assertEqual(self.texts("h1"), ["chatty, 1K context: unmodified"])
            self.assertEqual(self.count("#ladder"), 0)
            self.say("Hello", 4)
            self.assertEqual(self.page.thrown, [])

    def test_near_and_far_are_drawn(self):
        with chat_server(self.folder.name, "--method", "far:pi") as server:
            self.open(server.address)
            self.assertEqual(self.text("legend"), "4,096 free")
            self.say(LONG * 2, 8)
            near, far = (self.page.run(f"document.querySelector('#picture rect.{kind}').getBBox().width") for kind in ("near", "far"))
            self.assertGreater(near, 10)
            self.assertGreater(far, 10)
            length = self.length()
            shown = self.page.run("""[...document.querySelectorAll('#legend li')].map(e => [e.textContent.replace(/[^a-z].*$/s, '') ||
              e.textContent.match(/[a-z]+/)[0], Number(e.textContent.match(/^[\\d,]+/)[0].replaceAll(',', ''))])""")
            sizes = dict(map(tuple, shown))
            self.assertEqual(sizes["near"] + sizes["far"], length)
            self.assertEqual(length + sizes["free"], 4096)
            self.assertGreaterEqual(sizes["near"], 128)  # an eighth of the window

    def test_no_requests_to_other_sites(self):
        self.say("Hi", 2)
        for url in self.page.requests:
            self.assertTrue(url.startswith((self.scripted.address + "/", "data:")), url)
        self.assertEqual(self.page.log, [])
        self.assertEqual(self.page.thrown, [])
        ran = self.page.run("""(() => { window.ran = false;
          const s = document.createElement('script'); s.textContent = 'window.ran = true';
          document.body.append(s); s.remove(); return window.ran; })()""")
        self.assertFalse(ran)
        policy = self.page.run("fetch('/').then(r => r.headers.get('Content-Security-Policy'))")
        self.assertEqual(policy, "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
                                 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
        self.page.log.clear()

    def test_themes(self):
        background = "getComputedStyle(document.body).backgroundColor"
        self.page.theme("light")
        light = self.page.run(background)
        self.page.theme("dark")
        dark = self.page.run(background)
        self.assertNotEqual(dark, light)
        self.page.theme("light")
        self.click("#settings summary")
        self.click("#theme")
        self.click("#theme")
        self.assertEqual(self.page.run(background), dark)
        self.open(self.scripted.address)
        self.assertEqual(self.page.run(background), dark)
        self.assertEqual(self.texts("#theme"), ["Theme: dark"])

    def test_text_has_enough_contrast(self):
        self.answer(("reasoning", "Hm."), MARKDOWN, ("finish", "length"))
        self.answer(("status", (500, '{"error": {"message": "broken"}}')))
        self.page.log.clear()
        self.page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        self.assertEqual(self.page.faint_texts(".talk *, aside *, footer"), {"light": "", "dark": ""})

    def test_narrow(self):
        wide = "| a | b | c | d | e |\n|---|---|---|---|---|\n| " + " | ".join(["some words here"] * 5) + " |"
        self.answer(MARKDOWN + "\n\n" + wide + "\n\n```\n" + "x" * 500 + "\n```\n\n" + "y" * 500)
        try:
            for width, height in ((400, 800), (320, 600), (700, 400), (800, 900), (1400, 900)):
                self.page.resize(width, height)
                self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)
                self.assertEqual(self.page.run("log.scrollWidth <= log.clientWidth"), True, width)
                # The input, its buttons and some of the conversation are in view without scrolling the page.
                if height >= 600:
                    for name in ("input", "send", "add", "log"):
                        box = self.page.run(f"(r => [r.left, r.top, r.right, r.bottom])(document.getElementById('{name}').getBoundingClientRect())")
                        self.assertGreaterEqual(min(box[:2]), 0, (name, width))
                        self.assertLessEqual(box[2], width, (name, width))
                        self.assertLessEqual(box[3], height, (name, width))
                self.assertGreaterEqual(self.page.run("log.clientHeight"), 100, width)
            self.page.resize(400, 800)
            self.assertRegex(self.text("brief"), r"^\d+ of 4,096 tokens$")
            self.assertEqual(self.count("#brief svg .same"), 1)
        finally:
            self.page.resize(1400, 900)

    def test_every_control_has_a_name(self):
        self.answer(("reasoning", "Hm."), MARKDOWN)
        self.click("#settings summary")
        names = self.page.run("""[...document.querySelectorAll('button, input, textarea, select, summary, pre[tabindex]')].filter(
          e => e.getClientRects().length && e.checkVisibility()).map(e => e.getAttribute('aria-label') || e.innerText || (e.labels?.[0] || {}).innerText || '')""")
        self.assertNotIn("", names)
        self.assertGreaterEqual(len(names), 14)

    def test_everything_is_reached_by_keyboard_with_a_visible_focus(self):
        self.answer(("reasoning", "Hm."), MARKDOWN, ("finish", "length"))
        self.click("#settings summary")
        self.page.run("document.querySelector('.skip').focus()")
        seen = []
        for _ in range(60):
            self.page.key("Tab")
            now = self.page.run("""(() => { const e = document.activeElement, s = getComputedStyle(e);
              return [e.id || e.textContent.slice(0, 20), e.tagName, s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0]; })()""")
            if now[1] == "BODY":
                break
            seen.append(now)
        self.assertEqual([s for s in seen if not s[2]], [])
        names = [s[0] for s in seen]
        for name in ("theme", "chats", "fresh", "delete", "log", "Copy", "Edit", "Regenerate", "Reasoning", "input", "send", "add",
                     "system", "temperature", "tokens", "Details"):
            self.assertIn(name, names)
        self.assertLess(names.index("log"), names.index("input"))

    def test_the_answer_is_announced_once(self):
        self.assertEqual(self.page.run("[log.getAttribute('aria-live'), log.getAttribute('role')]"), ["polite", "log"])
        self.scripted.script("Slow", ("wait", 1), " answer.")
        self.begin("Hello")
        self.wait("document.querySelectorAll('.said.model').length > 0", "no answer begins")
        self.assertEqual(self.page.run("log.getAttribute('aria-busy')"), "true")
        self.done()
        self.assertEqual(self.page.run("log.getAttribute('aria-busy')"), "false")
        self.assertEqual(self.page.run("spoken.textContent"), "The answer is complete")

    def test_the_focus_stays_where_it_is_used(self):
        self.scripted.script("One.", ("wait", 1), "Two.")
        self.begin("Hello")
        self.wait("document.querySelectorAll('.said.model').length > 0", "no answer begins")
        self.page.run("document.getElementById('chats').focus()")
        self.done()
        self.assertEqual(self.page.run("document.activeElement.id"), "chats")

    def test_the_log_follows_unless_someone_reads_above(self):
        for _ in range(3):  # not long enough to be folded
            self.answer("\n\n".join(["A paragraph."] * 20), ("finish", "length"))
        self.assertTrue(self.page.run("log.scrollHeight - log.scrollTop - log.clientHeight < 3"))
        self.scripted.script("One.\n\n", ("wait", 1), "Two.\n\n" * 30)
        self.begin("More")
        self.wait("document.querySelectorAll('.said.model').length > 3", "no answer begins")
        self.page.run("log.scrollTop = 0")
        self.done()
        self.assertEqual(self.page.run("log.scrollTop"), 0)


if __name__ == "__main__":
    main()
