# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium through its DevTools protocol, over a pipe."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time


def find():
    return next((path for name in ("chromium", "chromium-browser", "google-chrome")
                 if (path := shutil.which(name))), None)


class Page:
    """One tab. Keeps its log, its exceptions and its network requests."""

    def __init__(self, width=1400, height=900):
        self.profile = tempfile.mkdtemp(prefix="mrrope-chromium-")
        # The browser reads from its descriptor 3 and writes to 4.
        theirs, ours = os.pipe(), os.pipe()
        self.process = subprocess.Popen(
            # Not sh: some shells know descriptors of one digit only.
            ["bash", "-c", f'exec "$0" "$@" 3<&{theirs[0]} 4>&{ours[1]}', find(), "--headless", "--no-sandbox",
             "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"],
            env={**os.environ, "TMPDIR": self.profile}, pass_fds=(theirs[0], ours[1]),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs[0])
        os.close(ours[1])
        self.commands, self.replies = os.fdopen(theirs[1], "wb"), os.fdopen(ours[0], "rb")
        self.buffer, self.session = b"", None
        self.number = 0
        self.events = []
        self.log, self.thrown, self.requests = [], [], []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        self.commands.write(json.dumps(command).encode() + b"\0")
        self.commands.flush()
        while True:
            message = self.receive()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def receive(self):
        """The next message; each ends with a zero."""
        while b"\0" not in self.buffer:
            part = self.replies.read1(1 << 20)
            if not part:
                raise RuntimeError("the browser closed the connection")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, message):
        method, details = message.get("method"), message.get("params", {})
        self.events.append(method)
        if method == "Runtime.consoleAPICalled":
            self.log.append(json.dumps(details["args"]))
        elif method == "Log.entryAdded":
            self.log.append(details["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.thrown.append(json.dumps(details["exceptionDetails"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])

    def open(self, path):
        """A file, or an address."""
        self.events.clear()
        text = str(path)
        url = text if text.startswith(("http:", "about:")) else pathlib.Path(path).resolve().as_uri()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self.note(self.receive())

    def run(self, script):
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def faint_texts(self, selector):
        """By theme: pieces of text with less contrast than WCAG AA asks for (4.5) to what is behind them."""
        script = """(() => {
          const parse = c => c.match(/[\\d.]+/g).map(Number);
          const lum = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 :
            ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
          const back = e => { for (; e; e = e.parentElement) {
            const cell = e.closest('.cell')?.querySelector('rect');
            const c = parse(cell ? getComputedStyle(cell).fill : getComputedStyle(e).backgroundColor);
            if (c.length < 4 || c[3] > 0) return lum(c); } return 1; };
          const bad = new Set();
          for (const e of document.querySelectorAll('%s')) {
            if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
            if (e.id === 'tip' || !e.getClientRects().length) continue;
            const s = getComputedStyle(e), a = lum(parse(e instanceof SVGElement ? s.fill : s.color)), b = back(e);
            const r = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (r < 4.5) bad.add(e.tagName + '.' + e.getAttribute('class') + '#' + e.id + ' ' + r.toFixed(2));
          }
          return [...bad].join('; '); })()""" % selector
        found = {}
        for theme in ("light", "dark"):
            self.theme(theme)
            found[theme] = self.run(script)
        self.theme("light")
        return found

    def theme(self, name):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": name}])

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def key(self, name, shift=False):
        more = {"text": "\r"} if name == "Enter" else {"text": " "} if name == " " else {}
        if shift:
            more["modifiers"] = 8
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                      windowsVirtualKeyCode={"Enter": 13, "Tab": 9, "Escape": 27, " ": 32}.get(name, 0), **more)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def choose_files(self, selector, *paths):
        """As if these files were chosen in the dialog of a file input."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path) for path in paths])

    def screenshot(self, path, height=None):
        """The whole page, or its first `height` pixels."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", clip=clip,
                         captureBeyondViewport=True)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.commands.close()
        self.replies.close()
        for _ in range(100):  # its helpers write until they have noticed
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                break
            time.sleep(0.1)
