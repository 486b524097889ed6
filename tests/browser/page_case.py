# SPDX-License-Identifier: Apache-2.0
"""What the tests of the server's page share: a page, and a server behind it."""

import json
import pathlib
import sys
import tempfile
import time
import unittest

import chromium
from scripted_server import ScriptedServer

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "serve"))
from chat_model import CHAT, with_template
from serve_client import MODEL, Server

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


def chat_server(folder, *flags, **more):
    return Server("--parallel", "1", *flags, model=with_template(MODEL, CHAT, folder), **more)


class PageCase(unittest.TestCase):
    """A page with a server behind it that answers by script where a test wants that."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = chat_server(cls.folder.name)
        cls.scripted = ScriptedServer(cls.server.address)
        cls.page = chromium.Page()

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.scripted.close()
        cls.server.__exit__(None)
        cls.folder.cleanup()

    def setUp(self):
        self.scripted.scripts.clear()
        self.scripted.asked.clear()
        self.page.open(self.scripted.address + "/health")  # the page keeps its conversation when it goes
        self.page.run("localStorage.clear(), sessionStorage.clear()")
        self.page.open(self.scripted.address + "/")
        for found in (self.page.requests, self.page.log, self.page.thrown):
            found.clear()

    def open(self, address):
        self.page.open(address + "/")

    def text(self, element):
        return self.page.run(f"document.getElementById('{element}').innerText")

    def length(self):
        """Tokens of the conversation."""
        return int(self.text("length").split()[0].replace(",", ""))

    def shown(self, selector):
        return self.page.run(f"document.querySelector({json.dumps(selector)}).checkVisibility()")

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


def main():
    """Exit code 77 (skipped) where no Chromium is installed."""
    if chromium.find() is None:
        print("SKIPPED: Chromium is not installed (./run test installs it)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
