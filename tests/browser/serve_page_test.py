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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
from chat_model import with_template

CHAT = ("{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}")
HOSTILE = "<img src=x onerror=document.title='owned'>"
LONG = "The river ran past the mill and the old house. " * 60


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


class ServePage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server(with_template(MODEL, CHAT, cls.folder.name))
        cls.page = chromium.Page()

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.server.close()
        cls.folder.cleanup()

    def setUp(self):
        self.page.requests.clear()
        self.page.open(self.server.address + "/")

    def text(self, element):
        return self.page.run(f"document.getElementById('{element}').innerText")

    def wait(self, condition, what):
        deadline = time.monotonic() + 60
        while not self.page.run(condition):
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def say(self, text, tokens=24):
        self.page.run(f"document.getElementById('tokens').value = {tokens}")
        self.page.run("document.getElementById('temperature').value = 0")
        self.page.run("document.getElementById('input').focus()")
        self.page.type(text)
        self.page.key("Enter")
        self.wait("!document.getElementById('send').disabled", "no answer")

    def answers(self):
        return self.page.run("[...document.querySelectorAll('.said.model span')].map(e => e.textContent)")

    def test_a_conversation_by_keyboard(self):
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
        self.assertEqual(self.page.run("document.querySelectorAll('#log img').length"), 0)
        self.assertIn(HOSTILE, self.text("log"))
        self.assertNotEqual(self.page.run("document.title"), "owned")

    def test_the_rung_of_a_long_prompt_is_shown(self):
        self.assertEqual(self.page.run("document.querySelector('#ladder tr.here').dataset.rung"), "0")
        self.say(LONG * 2, 8)
        rung = int(self.text("rung"))
        self.assertGreater(rung, 1)
        self.assertGreater(float(self.text("scale")), 1)
        self.assertEqual(self.page.run("document.querySelector('#ladder tr.here').dataset.rung"), str(rung - 1))
        self.assertGreater(self.page.run("document.getElementById('fill').offsetWidth"), 20)

    def test_stop_and_new(self):
        self.page.run("document.getElementById('tokens').value = 3000")
        self.page.run("document.getElementById('input').focus()")
        self.page.type("Tell me a long story")
        self.page.key("Enter")
        self.wait("document.querySelectorAll('.said.model').length > 0", "no answer begins")
        self.page.key("Escape")
        self.wait("!document.getElementById('send').disabled", "Escape does not stop it")
        self.assertEqual(len(self.answers()), 1)
        self.page.run("document.getElementById('fresh').click()")
        self.assertEqual(self.answers(), [])
        self.assertEqual(self.text("length"), "0")

    def test_errors_are_shown(self):
        self.say(LONG * 20)
        self.assertIn("the context holds 4096", self.text("log"))
        self.page.log.clear()  # the browser logs the refusal itself

    def test_plan_is_drawn(self):
        curves = json.loads(self.page.run("""JSON.stringify([...document.querySelectorAll(
          '.wide svg.lines .series')].map(g => g.dataset.values.split(';').map(v => Number(v.split(',')[1]))))"""))
        self.assertEqual(len(curves), 7)
        self.assertTrue(all(f == 1 for f in curves[0]))
        self.assertAlmostEqual(curves[-1][-1], 4, places=3)
        self.assertEqual(self.page.run("document.querySelectorAll('#ladder tbody tr').length"), 9)

    def test_no_requests_to_other_sites(self):
        self.say("Hi", 2)
        for url in self.page.requests:
            self.assertTrue(url.startswith((self.server.address + "/", "data:")), url)
        self.assertEqual(self.page.log, [])
        self.assertEqual(self.page.thrown, [])
        ran = self.page.run("""(() => { window.ran = false;
          const s = document.createElement('script'); s.textContent = 'window.ran = true';
          document.body.append(s); s.remove(); return window.ran; })()""")
        self.assertFalse(ran)
        self.page.log.clear()

    def test_light_dark_and_narrow(self):
        background = "getComputedStyle(document.body).backgroundColor"
        self.page.theme("light")
        light = self.page.run(background)
        self.page.theme("dark")
        self.assertNotEqual(self.page.run(background), light)
        self.page.theme("light")
        for width in (400, 1400):
            self.page.resize(width, 900)
            self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)

    def test_every_control_has_a_name(self):
        names = self.page.run("""[...document.querySelectorAll('button, input, textarea')].filter(
          e => e.getClientRects().length).map(e => e.innerText || (e.labels[0] || {}).innerText || '')""")
        self.assertNotIn("", names)
        self.assertGreaterEqual(len(names), 6)

    def test_without_a_template_continues_text(self):
        server = Server(MODEL)
        try:
            self.page.open(server.address + "/")
            self.say("The theorem", 12)
            self.assertEqual(len(self.answers()), 1)
        finally:
            server.close()

    def test_screenshots(self):
        if PICTURES is None:
            return
        self.say("The river ran past the mill and the old house.", 60)
        self.say(LONG, 60)
        self.page.pictures(PICTURES, "serve")


if __name__ == "__main__":
    if chromium.find() is None:
        print("SKIPPED: Chromium is not installed (./run test installs it)")
        sys.exit(77)
    COMMAND, MODEL = sys.argv[1:3]
    PICTURES = sys.argv[3] if len(sys.argv) > 3 else None
    unittest.main(argv=sys.argv[:1])
