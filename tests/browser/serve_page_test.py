#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server's page in a real browser: conversations, progress, files.

    python3 tests/browser/serve_page_test.py MRROPE MODEL
"""

import json
import pathlib

from page_case import HOSTILE, LONG, PageCase, Server, chat_server, main


class Conversation(PageCase):
    def test_by_keyboard(self):
        self.assertEqual(self.page.run("document.activeElement.id"), "input")
        self.say("Hello there, " + HOSTILE)
        first = self.answers()
        self.assertEqual(len(first), 1)
        self.assertGreater(len(first[0]), 10)
        length = self.length()
        self.assertGreater(length, 24)
        self.click("#details summary")
        self.assertEqual((self.text("rung"), self.text("scale")), ("1", "1"))
        self.assertRegex(self.text("speed"), r"^[\d.]+$")
        self.say("And then?")
        self.assertEqual(self.answers()[0], first[0])
        self.assertEqual(len(self.answers()), 2)
        self.assertGreater(self.length(), length)
        kept = self.page.run("Number(document.getElementById('read').innerText.match(/(\\d+) cached/)[1])")
        self.assertGreater(kept, 20)
        # Text is escaped.
        self.assertEqual(self.count("#log img"), 0)
        self.assertIn(HOSTILE, self.text("log"))
        self.assertNotEqual(self.page.run("document.title"), "owned")

    def test_the_rung_of_a_long_prompt_is_shown(self):
        self.assertEqual(self.page.run("document.querySelector('#ladder tr.here').dataset.rung"), "0")
        self.click("#details summary")
        self.say(LONG * 2, 8)
        rung = int(self.text("rung"))
        self.assertGreater(rung, 1)
        self.assertGreater(float(self.text("scale")), 1)
        rows = self.page.run("[...document.querySelectorAll('#ladder tbody tr')].map(r => [Number(r.dataset.rung), r.className])")
        self.assertEqual([r for r in rows if r[1] == "here"], [next(r for r in rows if r[0] >= rung - 1)])
        self.assertGreater(self.page.run("document.querySelector('#picture .far').getBBox().width"), 20)
        self.assertIn("far: distance divided by", self.text("legend"))
        self.assertIn("near: true distance", self.text("legend"))
        label = self.page.run("document.querySelector('#picture svg').getAttribute('aria-label')")
        self.assertIn(f"rung {rung} of ", label)

    def test_figures_are_shown_once_they_are_known(self):
        figures = ("#length", "#speed", "#read")
        self.assertEqual([self.shown(f) for f in figures], [False] * 3)
        self.assertFalse(self.shown("#delete") or self.shown("#stop"))
        self.say("The river")
        self.assertEqual([self.shown(f) for f in figures], [True] * 3)
        self.assertTrue(self.shown("#delete"))
        self.assertIn("unmodified: as the model was trained", self.text("legend"))
        self.assertEqual(self.count("#picture .window"), 0)  # nothing is compressed yet
        self.click("#fresh")
        self.assertEqual([self.shown(f) for f in figures], [False] * 3)

    def test_stop_and_new(self):
        self.begin("Tell me a long story", 3000)
        self.wait("document.querySelectorAll('.said.model').length > 0", "no answer begins")
        self.page.key("Escape")
        self.done()
        self.assertEqual(len(self.answers()), 1)
        self.assertEqual(self.texts(".said.model .note"), ["Stopped."])
        self.click("#fresh")
        self.assertEqual(self.answers(), [])
        self.assertEqual(self.length(), 0)

    def test_errors_are_shown(self):
        self.say(LONG * 20)
        self.assertIn("the available context size: 4096 tokens", self.text("log"))
        self.assertEqual(self.count(".said.trouble[role=alert]"), 1)
        self.answer(("status", (502, "<html>not JSON</html>")))
        self.assertIn("status 502", self.texts(".said.trouble")[0])
        self.answer("Half an ans", ("error", "no complete answer within 3 s"))
        self.assertEqual(len(self.texts(".said.trouble")), 1)
        self.assertIn("no complete answer within 3 s", self.texts(".said.trouble")[0])
        self.assertIn("Half an ans", self.answers()[-1])
        self.answer("Half", ("break", None))
        self.assertIn("connection ended", self.texts(".said.trouble")[0])
        self.page.log.clear()  # the browser logs the refusals itself

    def test_an_answer_cut_by_its_length_says_so_and_goes_on(self):
        self.say("The river", 5)
        self.assertIn("Cut off: the answer reached its longest length", self.texts(".said.model .note")[0])
        before = self.answers()[0]
        self.press("Continue")
        self.done()
        self.assertTrue(self.scripted.asked[-1]["continue_final_message"])
        self.assertEqual(self.scripted.asked[-1]["messages"][-1]["role"], "assistant")
        self.assertEqual(len(self.answers()), 1)
        self.assertTrue(self.answers()[0].startswith(before.rstrip()), self.answers())
        self.assertGreater(len(self.answers()[0]), len(before))
        self.assertEqual(self.count(".said.trouble"), 0)

    def test_reasoning_is_folded(self):
        self.answer(("reasoning", "Let me "), ("reasoning", "think."), "Four.", text="2 + 2?")
        self.assertEqual(self.texts(".thinking summary"), ["Reasoning"])
        self.assertEqual(self.texts(".thinking div"), ["Let me think."])
        self.assertFalse(self.page.run("document.querySelector('.thinking').open"))
        self.assertEqual(self.answers(), ["Four."])
        self.answer("Yes.", text="Sure?")
        self.assertEqual([m["content"] for m in self.scripted.asked[-1]["messages"]], ["2 + 2?", "Four.", "Sure?"])

    def test_long_messages_are_folded(self):
        lines = "\n\n".join(["A line."] * 21)  # 41 with those in between
        self.answer(lines, text="Short")
        self.assertEqual(self.count(".folded"), 0)  # the last answer is being read
        self.answer("Yes.", text=LONG * 2)
        self.assertEqual(self.texts(".actions button:first-child"), ["Edit", "Show all", "Show all", "Copy"])
        self.assertEqual(self.count(".said.model .folded, .said.you .folded"), 2)
        high = "document.querySelector('.said.you ~ .said.you .text').clientHeight"
        low = self.page.run(high)
        self.press("Show all")
        self.assertGreater(self.page.run(high), 2 * low)
        self.assertEqual(self.page.run("document.activeElement.textContent"), "Show less")
        self.page.key("Enter")
        self.assertEqual(self.page.run(high), low)
        self.open(self.scripted.address)
        self.assertEqual(self.count(".folded"), 2)
        self.answer("No.", text="x" * 3000)
        self.assertEqual(self.count(".folded"), 2)

    def test_boxes_grow_with_their_text(self):
        high = "document.activeElement.offsetHeight"
        one = self.page.run(high)
        self.assertLess(one, 60)
        self.page.type("a\nb\nc")
        self.assertGreater(self.page.run(high), one + 40)
        self.page.type("\nd" * 100)
        self.assertAlmostEqual(self.page.run(high), 900 / 3, delta=10)
        self.scripted.script("Yes.")
        self.page.key("Enter")
        self.done()
        self.assertEqual(self.page.run("document.getElementById('input').offsetHeight"), one)
        self.press("Edit", last=False)
        self.assertAlmostEqual(self.page.run(high), 900 / 3, delta=10)

    def test_a_system_prompt(self):
        self.click("#settings summary")
        self.page.run("document.getElementById('system').focus()")
        self.page.type("Answer in verse.")
        self.answer("Roses.")
        self.assertEqual(self.scripted.asked[-1]["messages"][0], {"role": "system", "content": "Answer in verse."})
        self.assertIn("with a system prompt", self.page.run("document.querySelector('#settings summary').textContent"))

    def test_regenerate(self):
        self.answer("One.", text="First")
        self.answer("Two.", text="Second")
        self.scripted.script("Other.")
        self.press("Regenerate")
        self.done()
        self.assertEqual(self.answers(), ["One.", "Other."])
        self.assertEqual([m["content"] for m in self.scripted.asked[-1]["messages"]], ["First", "One.", "Second"])

    def test_edit_an_earlier_message(self):
        self.answer("One.", text="First")
        self.answer("Two.", text="Second")
        self.press("Edit", last=False)
        self.assertEqual(self.page.run("document.activeElement.value"), "First")
        self.page.key("Escape")
        self.assertEqual(self.count(".editor"), 0)
        self.assertEqual(self.page.run("document.activeElement.textContent"), "Edit")
        self.page.key("Enter")
        self.page.run("document.activeElement.select()")
        self.page.type("Changed")
        self.scripted.script("Anew.")
        self.page.key("Enter")
        self.done()
        self.assertEqual(self.answers(), ["Anew."])
        self.assertEqual(self.texts(".said.you .text"), ["Changed"])
        self.assertEqual([m["content"] for m in self.scripted.asked[-1]["messages"]], ["Changed"])
        # An answer is changed in place.
        self.press("Edit")
        self.page.run("document.activeElement.select()")
        self.page.type("**Mine**")
        self.press("Save")
        self.assertEqual(self.texts(".said.model strong"), ["Mine"])
        self.answer("So.", text="More")
        self.assertEqual(self.scripted.asked[-1]["messages"][1]["content"], "**Mine**")

    def test_survives_a_reload(self):
        self.answer("**Bold** answer", text="Remember this")
        self.answer("Cut", ("finish", "length"), text="And that")
        self.open(self.scripted.address)
        self.assertEqual(self.answers(), ["Bold answer", "Cut"])
        self.assertEqual(self.texts(".said.you .text"), ["Remember this", "And that"])
        self.assertEqual(self.texts(".said.model strong"), ["Bold"])
        self.assertIn("Cut off", self.texts(".said.model .note")[1])
        self.assertGreater(self.length(), 0)
        self.answer("Still here", text="Third")
        self.assertEqual(len(self.scripted.asked[-1]["messages"]), 5)
        # A second conversation does not replace the first.
        self.click("#fresh")
        self.answer("Another", text="Something else")
        self.assertEqual(self.texts("#chats option"), ["Something else", "Remember this"])
        self.page.run("""(() => { const s = document.getElementById('chats'); s.selectedIndex = 1;
          s.dispatchEvent(new Event('change')); })()""")
        self.assertEqual(self.answers(), ["Bold answer", "Cut", "Still here"])
        self.click("#delete")
        self.assertEqual(len(self.answers()), 3)
        self.click("#delete")
        self.assertEqual(self.texts("#chats option"), ["Something else"])
        self.assertEqual(self.answers(), ["Another"])

    def test_what_was_stored_by_others_does_no_harm(self):
        self.page.run("""(localStorage.setItem('mrrope.chat.x', '{"mode": "chat", "said": [1, null, {"role": "assistant", ' +
          '"content": {"a": 1}, "files": [null, {"name": 7}]}, {"role": "system", "content": "x"}]}'),
          localStorage.setItem('mrrope.chat.y', 'not JSON'), localStorage.setItem('mrrope.settings', '[[[') )""")
        self.page.run("sessionStorage.setItem('mrrope.current', '\"x\"')")
        self.page.thrown.clear()
        self.open(self.scripted.address)
        self.assertEqual(self.page.thrown, [])
        self.answer("Fine.")
        self.assertEqual(self.answers()[-1], "Fine.")

    def test_an_answer_that_is_cut_by_a_reload_is_kept(self):
        self.scripted.script("The first part", ("wait", 20))
        self.begin("Go")
        self.wait("document.querySelectorAll('.said.model .text').length > 0", "no answer begins")
        self.open(self.scripted.address)
        self.assertEqual(self.answers(), ["The first part"])
        self.assertTrue(self.scripted.hung_up.wait(10))

    def test_without_a_template_continues_text(self):
        with Server("--parallel", "1") as server:
            self.open(server.address)
            self.say("The theorem", 12)
            self.assertEqual(len(self.answers()), 1)
            self.assertFalse(self.page.run("document.getElementById('system').getClientRects().length > 0"))

    def test_a_key_is_asked_for(self):
        key = pathlib.Path(self.folder.name) / "key"
        key.write_text("a secret key of the test\n")
        key.chmod(0o600)
        with chat_server(self.folder.name, "--api-key-file", str(key)) as server:
            self.open(server.address)
            self.assertTrue(self.page.run("document.getElementById('keyrow').hidden"))
            self.say("Hello")
            self.assertEqual(self.page.run("document.activeElement.id"), "key")
            self.page.type("a secret key of the test")
            self.press("Ask again")
            self.done()
            self.assertEqual(len(self.answers()), 1)
            self.assertNotIn("secret", self.page.run("JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"))
        self.page.log.clear()


class Progress(PageCase):
    def test_rate_and_time_left(self):
        for before in (0, 0.5):  # before and after the page shows that it waits
            with self.subTest(before):
                self.read_a_prompt(before)

    def read_a_prompt(self, before):
        self.click("#fresh")
        self.scripted.script(("wait", before), ("progress", (1000, 5000, 200, 1600)), ("wait", 4), "Now.")
        self.begin("Read this")
        self.wait("!reading.hidden && readtext.textContent.includes('Reading')", "no progress")
        self.assertEqual(self.text("readtext"),
                         "Reading the prompt: 800 of 4,800 tokens (and 200 cached), 500 tokens/s, 8 s left")
        self.assertEqual(self.page.run("[progress.value, progress.max]"), [800, 4800])
        self.assertIn("Reading a prompt of 4,800 tokens", self.page.run("document.getElementById('spoken').textContent"))
        self.done()
        self.assertEqual(self.count("#reading:not([hidden])"), 0)
        self.assertEqual(self.answers(), ["Now."])

    def test_cancel_while_a_prompt_is_read(self):
        self.scripted.script(("progress", (100, 90000, 0, 1000)), ("wait", 30), "Never.")
        self.begin("Read all this")
        self.wait("!reading.hidden && readtext.textContent.includes('Reading')", "no progress")
        self.click("#stop")
        self.done()
        self.assertTrue(self.scripted.hung_up.wait(10))
        self.assertEqual(self.answers(), [])
        self.assertEqual(self.count("#reading:not([hidden])"), 0)
        self.answer("Twice.", text="Again")  # nothing of it is left
        self.assertEqual(self.answers(), ["Twice."])

    def test_the_real_server_tells_it(self):
        self.page.run("""(window.seen = [], new MutationObserver(() => seen.push(readtext.textContent)).observe(
          readtext, {childList: true}))""")
        self.say(LONG * 4, 4)
        seen = [t for t in self.page.run("seen") if t.startswith("Reading")]
        self.assertRegex(seen[-1], r"^Reading the prompt: [\d,]+ of [\d,]+ tokens, [\d,]+ tokens/s, \d+ s left$")


class Files(PageCase):
    def drop(self, name, text):
        self.page.run(f"""(() => {{
          const data = new DataTransfer();
          data.items.add(new File([{text}], {json.dumps(name)}));
          for (const kind of ['dragover', 'drop'])
            document.getElementById('log').dispatchEvent(new DragEvent(kind, {{dataTransfer: data, bubbles: true, cancelable: true}}));
          }})()""")

    def test_a_dropped_file(self):
        self.drop("river.txt", json.dumps(LONG))
        self.wait("document.getElementById('draft').textContent.includes('the conversation becomes')", "no forecast")
        tokens = self.page.run("""fetch('tokenize', {method: 'POST', body: JSON.stringify({content: %s, add_special: false})}).then(
          r => r.json()).then(r => r.tokens.length)""" % json.dumps(LONG))
        self.assertIn(f"river.txt: {tokens:,} tokens", self.text("files"))
        self.assertIn(f"{tokens:,} tokens, {100 * tokens / 4096:.0f} % of the context", self.text("draft"))
        rungs = self.page.run("document.body.dataset.rungs.split(';').map(r => r.split(',').map(Number))")
        factor = next(rung[3] for rung in rungs if tokens <= rung[0])
        self.assertIn("unmodified" if factor == 1 else f"compressed {factor:.4g}x", self.text("draft"))
        self.assertIn("about to be sent", self.text("legend"))
        self.answer("A river.", text="What is it about?")
        sent = self.scripted.asked[-1]["messages"][0]["content"]
        self.assertIn("river.txt", sent)
        self.assertIn(LONG, sent)
        self.assertTrue(sent.endswith("What is it about?"))
        self.assertEqual(self.text("files"), "")
        self.assertEqual(self.texts(".file summary"), [f"river.txt, {tokens:,} tokens"])
        self.click(".file summary")
        self.wait("document.querySelectorAll('.file pre').length === 1", "the file is not shown")
        # It survives a reload, and an edit of the text beside it.
        self.open(self.scripted.address)
        self.assertEqual(len(self.texts(".file summary")), 1)
        self.press("Edit", last=False)
        self.scripted.script("Again.")
        self.page.key("Enter")
        self.done()
        self.assertEqual(self.scripted.asked[-1]["messages"][0]["content"], sent)

    def test_a_chosen_file_and_its_removal(self):
        path = pathlib.Path(self.folder.name) / "notes.md"
        path.write_text("Some notes.\n")
        self.page.choose_files("#file", path)
        self.wait("document.querySelectorAll('#files li').length === 1", "no file")
        self.click("#files button")
        self.assertEqual(self.count("#files li"), 0)
        self.wait("document.getElementById('draft').textContent === ''", "the forecast stays")

    def test_a_file_that_does_not_fit_says_so(self):
        self.drop("long.txt", json.dumps(LONG * 20))
        self.wait("document.getElementById('draft').textContent.includes('too long')", "no forecast")
        self.assertRegex(self.text("draft"), r"too long by at least [\d,]+ tokens")

    def test_files_that_are_not_text(self):
        self.drop("picture.png", "new Uint8Array([137, 80, 78, 71, 0, 255])")
        self.wait("document.querySelectorAll('.said.trouble').length === 1", "no error")
        self.assertIn("picture.png was not added: it is not a text file", self.text("log"))
        self.assertEqual(self.count("#files li"), 0)


if __name__ == "__main__":
    main()
