#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server's page in a real browser.

    python3 tests/browser/serve_page_test.py MRROPE MODEL [SCREENSHOTS]

Exit code 77 (skipped) where no Chromium is installed. With a folder as third argument it leaves
pictures there.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import chromium
from scripted_server import ScriptedServer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
from chat_model import with_template

CHAT = ("{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}")
HOSTILE = "<img src=x onerror=document.title='owned'>"
LONG = "The river ran past the mill and the old house. " * 60

MARKDOWN = """# A plan

Some **bold**, *italic*, ***both***, ~~gone~~ and `code with <b>`; snake_case_name and 2 * 3 * 4 stay.

1. first
   - inner **one**
   - inner two
2. second

   more of it

| name | size |
|:-----|-----:|
| a | `1 | 2` |
| b \\| c | 22 |

> quoted
> text

```cpp
int main() {
\treturn 0;  // **not bold**
}
```

See [the site](https://example.org/a_(b)?c=d_e) and https://example.org/plain_page.

---
The end."""


class Server:
    def __init__(self, model, *flags):
        self.process = subprocess.Popen(
            [COMMAND, "serve", model, "--ctx", "4k", "--port", "0", "--json", "--parallel", "1", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = json.loads(self.process.stdout.readline())["address"]

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        self.process.stdout.close()


class PageCase(unittest.TestCase):
    """A page with a server behind it that answers by script where a test wants that."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server(with_template(MODEL, CHAT, cls.folder.name))
        cls.scripted = ScriptedServer(cls.server.address)
        cls.page = chromium.Page()

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.scripted.close()
        cls.server.close()
        cls.folder.cleanup()

    def setUp(self):
        self.scripted.scripts.clear()
        self.scripted.asked.clear()
        self.page.open("about:blank")  # a page keeps its conversation when it goes
        self.page.call("Storage.clearDataForOrigin", origin=self.scripted.address, storageTypes="local_storage")
        self.page.open(self.scripted.address + "/")
        for found in (self.page.requests, self.page.log, self.page.thrown):
            found.clear()

    def open(self, address):
        self.page.open(address + "/")

    def text(self, element):
        return self.page.run(f"document.getElementById('{element}').innerText")

    def count(self, selector):
        return self.page.run(f"document.querySelectorAll({json.dumps(selector)}).length")

    def texts(self, selector):
        return self.page.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def click(self, selector):
        self.page.run(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, text, last=True):
        """The button of a message with this text."""
        self.page.run(f"""[...document.querySelectorAll('.actions button')].filter(
          b => b.textContent === {json.dumps(text)}).at({-1 if last else 0}).click()""")

    def wait(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not self.page.run(condition):
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def begin(self, text, tokens=24):
        self.page.run(f"document.getElementById('tokens').value = {tokens}")
        self.page.run("document.getElementById('temperature').value = 0")
        self.page.run("document.getElementById('input').focus()")
        self.page.type(text)
        self.page.key("Enter")

    def done(self):
        self.wait("!document.getElementById('send').disabled", "no answer")

    def say(self, text, tokens=24):
        self.begin(text, tokens)
        self.done()

    def answer(self, *steps, text="Hello"):
        self.scripted.script(*steps)
        self.say(text)

    def answers(self):
        return self.texts(".said.model .text")


class Conversation(PageCase):
    def test_by_keyboard(self):
        self.assertEqual(self.page.run("document.activeElement.id"), "input")
        self.say("Hello there, " + HOSTILE)
        first = self.answers()
        self.assertEqual(len(first), 1)
        self.assertGreater(len(first[0]), 10)
        length = int(self.text("length"))
        self.assertGreater(length, 24)
        self.assertEqual((self.text("rung"), self.text("scale")), ("1", "1"))
        self.assertRegex(self.text("speed"), r"^[\d.]+$")
        self.say("And then?")
        self.assertEqual(self.answers()[0], first[0])
        self.assertEqual(len(self.answers()), 2)
        self.assertGreater(int(self.text("length")), length)
        kept = self.page.run("Number(document.getElementById('read').innerText.match(/(\\d+) cached/)[1])")
        self.assertGreater(kept, 20)
        # Text is escaped.
        self.assertEqual(self.count("#log img"), 0)
        self.assertIn(HOSTILE, self.text("log"))
        self.assertNotEqual(self.page.run("document.title"), "owned")

    def test_the_rung_of_a_long_prompt_is_shown(self):
        self.assertEqual(self.page.run("document.querySelector('#ladder tr.here').dataset.rung"), "0")
        self.say(LONG * 2, 8)
        rung = int(self.text("rung"))
        self.assertGreater(rung, 1)
        self.assertGreater(float(self.text("scale")), 1)
        self.assertEqual(self.page.run("document.querySelector('#ladder tr.here').dataset.rung"), str(rung - 1))
        self.assertGreater(self.page.run("document.querySelector('#picture .far').getBBox().width"), 20)
        self.assertIn("rescaled", self.text("legend"))
        label = self.page.run("document.querySelector('#picture svg').getAttribute('aria-label')")
        self.assertIn(f"rung {rung} of 9", label)

    def test_stop_and_new(self):
        self.begin("Tell me a long story", 3000)
        self.wait("document.querySelectorAll('.said.model').length > 0", "no answer begins")
        self.page.key("Escape")
        self.done()
        self.assertEqual(len(self.answers()), 1)
        self.assertEqual(self.texts(".said.model .note"), ["Stopped."])
        self.click("#fresh")
        self.assertEqual(self.answers(), [])
        self.assertEqual(self.text("length"), "0")

    def test_errors_are_shown(self):
        self.say(LONG * 20)
        self.assertIn("the context holds 4096", self.text("log"))
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
        self.assertGreater(int(self.text("length")), 0)
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
        server = Server(MODEL)
        try:
            self.open(server.address)
            self.say("The theorem", 12)
            self.assertEqual(len(self.answers()), 1)
            self.assertFalse(self.page.run("document.getElementById('system').getClientRects().length > 0"))
        finally:
            server.close()

    def test_a_key_is_asked_for(self):
        key = pathlib.Path(self.folder.name) / "key"
        key.write_text("a secret key of the test\n")
        key.chmod(0o600)
        server = Server(with_template(MODEL, CHAT, self.folder.name), "--api-key-file", str(key))
        try:
            self.open(server.address)
            self.assertTrue(self.page.run("document.getElementById('keyrow').hidden"))
            self.say("Hello")
            self.assertEqual(self.page.run("document.activeElement.id"), "key")
            self.page.type("a secret key of the test")
            self.press("Ask again")
            self.done()
            self.assertEqual(len(self.answers()), 1)
            self.assertNotIn("secret", self.page.run("JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"))
        finally:
            server.close()
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

    def test_comments_tell_it_too(self):
        self.scripted.script(("wait", 0.3), ("comment", {"read": 512, "total": 4096, "tokens_per_second": 40.0, "seconds_left": 89.6}),
                             ("wait", 4), "Now.")
        self.begin("Read this")
        self.wait("!reading.hidden && readtext.textContent.includes('Reading')", "no progress")
        self.assertIn("512 of 4,096 tokens, 40 tokens/s, 1 min 30 s left", self.text("readtext"))
        self.done()

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
        ends = self.page.run("document.body.dataset.rungs.split(';').map(r => Number(r.split(',')[0]))")
        rung = next(i for i, end in enumerate(ends) if tokens <= end) + 1
        self.assertIn(f"rung {rung} of {len(ends)}", self.text("draft"))
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
                  const box = document.createElement('div'), view = markdown.view(box);
                  view.grow(text.slice(0, text.length / 2));
                  view.grow(text);
                  view.finish(text);
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
    def test_plan_is_drawn(self):
        curves = json.loads(self.page.run("""JSON.stringify([...document.querySelectorAll(
          '.wide svg.lines .series')].map(g => g.dataset.values.split(';').map(v => Number(v.split(',')[1]))))"""))
        self.assertEqual(len(curves), 7)
        self.assertTrue(all(f == 1 for f in curves[0]))
        self.assertAlmostEqual(curves[-1][-1], 4, places=3)
        self.assertEqual(self.count("#ladder tbody tr"), 9)

    def test_near_and_far_are_drawn(self):
        server = Server(with_template(MODEL, CHAT, self.folder.name), "--method", "far:pi")
        try:
            self.open(server.address)
            self.assertIn("untouched", self.text("legend"))
            self.say(LONG * 2, 8)
            near, far = (self.page.run(f"document.querySelector('#picture rect.{kind}').getBBox().width") for kind in ("near", "far"))
            self.assertGreater(near, 10)
            self.assertGreater(far, 10)
            length = int(self.text("length"))
            shown = self.page.run("""[...document.querySelectorAll('#legend li')].map(e => [e.textContent.replace(/[^a-z].*$/s, '') ||
              e.textContent.match(/[a-z]+/)[0], Number(e.textContent.match(/^[\\d,]+/)[0].replaceAll(',', ''))])""")
            sizes = dict(map(tuple, shown))
            self.assertEqual(sizes["near"] + sizes["far"], length)
            self.assertEqual(length + sizes["free"], 4096)
            self.assertGreaterEqual(sizes["near"], 256)  # a quarter of the window
        finally:
            server.close()

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
        self.click("#theme")
        self.click("#theme")
        self.assertEqual(self.page.run(background), dark)
        self.open(self.scripted.address)
        self.assertEqual(self.page.run(background), dark)
        self.assertEqual(self.text("theme"), "Theme: dark")

    def test_text_has_enough_contrast(self):
        """WCAG AA (4.5) for every piece of text, on what is behind it."""
        self.answer(("reasoning", "Hm."), MARKDOWN, ("finish", "length"))
        self.answer(("status", (500, '{"error": {"message": "broken"}}')))
        self.page.log.clear()
        self.page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        script = """(() => {
          const parse = c => c.match(/[\\d.]+/g).map(Number);
          const lum = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 :
            ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
          const back = e => { for (; e; e = e.parentElement) {
            const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return lum(c); } return 1; };
          const bad = new Set();
          for (const e of document.querySelectorAll('.talk *, header *, #legend *, footer')) {
            if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length) continue;
            const a = lum(parse(getComputedStyle(e).color)), b = back(e);
            const r = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (r < 4.5) bad.add(e.tagName + '.' + e.className + '#' + e.id + ' ' + r.toFixed(2));
          }
          return [...bad].join('; '); })()"""
        for theme in ("light", "dark"):
            self.page.theme(theme)
            self.assertEqual(self.page.run(script), "", theme)
        self.page.theme("light")

    def test_narrow(self):
        wide = "| a | b | c | d | e |\n|---|---|---|---|---|\n| " + " | ".join(["some words here"] * 5) + " |"
        self.answer(MARKDOWN + "\n\n" + wide + "\n\n```\n" + "x" * 500 + "\n```\n\n" + "y" * 500)
        try:
            for width, height in ((400, 800), (320, 600), (700, 400), (1400, 900)):
                self.page.resize(width, height)
                self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)
                self.assertEqual(self.page.run("log.scrollWidth <= log.clientWidth"), True, width)
                # The input, its buttons and some of the conversation are in view without scrolling the page.
                if height >= 600:
                    for name in ("input", "send", "stop", "log"):
                        box = self.page.run(f"(r => [r.left, r.top, r.right, r.bottom])(document.getElementById('{name}').getBoundingClientRect())")
                        self.assertGreaterEqual(min(box[:2]), 0, (name, width))
                        self.assertLessEqual(box[2], width, (name, width))
                        self.assertLessEqual(box[3], height, (name, width))
                self.assertGreaterEqual(self.page.run("log.clientHeight"), 100, width)
            self.page.resize(400, 800)
            self.assertIn("rung 1 of 9", self.text("brief"))
        finally:
            self.page.resize(1400, 900)

    def test_every_control_has_a_name(self):
        self.answer(("reasoning", "Hm."), MARKDOWN)
        self.click("#settings summary")
        names = self.page.run("""[...document.querySelectorAll('button, input, textarea, select, summary, pre[tabindex]')].filter(
          e => e.getClientRects().length).map(e => e.getAttribute('aria-label') || e.innerText || (e.labels?.[0] || {}).innerText || '')""")
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
                     "system", "temperature", "tokens"):
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
        self.answer("\n\n".join(["A paragraph."] * 80), ("finish", "length"))
        self.assertTrue(self.page.run("log.scrollHeight - log.scrollTop - log.clientHeight < 3"))
        self.scripted.script("One.\n\n", ("wait", 1), "Two.\n\n" * 30)
        self.begin("More")
        self.wait("document.querySelectorAll('.said.model').length > 1", "no answer begins")
        self.page.run("log.scrollTop = 0")
        self.done()
        self.assertEqual(self.page.run("log.scrollTop"), 0)

    def test_screenshots(self):
        if PICTURES is None:
            return
        self.page.pictures(PICTURES, "serve-empty")
        self.say("The river ran past the mill and the old house.", 60)
        self.answer(("reasoning", "The user wants a plan."), MARKDOWN, ("finish", "length"), text="Make a plan")
        self.page.pictures(PICTURES, "serve")
        self.scripted.script(("progress", (21000, 96000, 1200, 24000)), ("wait", 6), "Read.")
        self.begin("Read the files")
        time.sleep(0.6)
        self.page.pictures(PICTURES, "serve-reading")
        self.done()


if __name__ == "__main__":
    if chromium.find() is None:
        print("SKIPPED: Chromium is not installed (./run test installs it)")
        sys.exit(77)
    COMMAND, MODEL = sys.argv[1:3]
    PICTURES = sys.argv[3] if len(sys.argv) > 3 else None
    unittest.main(argv=sys.argv[:1])
