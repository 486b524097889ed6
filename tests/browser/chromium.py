# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium through its DevTools protocol, with the standard library alone."""

import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


def find():
    return next((path for name in ("chromium", "chromium-browser", "google-chrome")
                 if (path := shutil.which(name))), None)


class WebSocket:
    """Just enough of RFC 6455 for one local peer."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(head.decode())

    def take(self, count):
        while len(self.buffer) < count:
            part = self.socket.recv(65536)
            if not part:
                raise RuntimeError("the browser closed the connection")
            self.buffer += part
        out, self.buffer = self.buffer[:count], self.buffer[count:]
        return out

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = bytes([0x81]) + (bytes([0x80 | size]) if size < 126 else
                                struct.pack(">BH", 0x80 | 126, size) if size < 65536 else
                                struct.pack(">BQ", 0x80 | 127, size))
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        data = b""
        while True:
            first, second = self.take(2)
            size = second & 0x7F
            if size == 126:
                size, = struct.unpack(">H", self.take(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.take(8))
            part = self.take(size)
            if first & 0x0F == 8:
                raise RuntimeError("the browser closed the connection")
            if first & 0x0F in (0, 1):
                data += part
                if first & 0x80:
                    return data.decode()


class Page:
    """One tab. Keeps its log, its exceptions and its network requests."""

    def __init__(self, width=1400, height=900):
        self.profile = tempfile.mkdtemp(prefix="mrrope-chromium-")
        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             "--remote-debugging-port=0", f"--user-data-dir={self.profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        active = pathlib.Path(self.profile) / "DevToolsActivePort"
        deadline = time.monotonic() + 120
        while not (active.exists() and active.read_text().count("\n")):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("chromium did not start")
            time.sleep(0.1)
        port = int(active.read_text().split()[0])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=60) as reply:
            target = next(t for t in json.load(reply) if t["type"] == "page")
        path = "/" + target["webSocketDebuggerUrl"].split("/", 3)[3]
        self.socket = WebSocket("127.0.0.1", port, path)
        self.number = 0
        self.events = []
        self.log, self.thrown, self.requests = [], [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

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
            self.note(json.loads(self.socket.receive()))

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

    def pictures(self, folder, name):
        """Both themes, wide and narrow."""
        for theme in ("light", "dark"):
            for width in (1400, 400):
                self.theme(theme)
                self.resize(width, 900)
                self.screenshot(pathlib.Path(folder) / f"{name}-{theme}-{width}.png")
        self.theme("light")
        self.resize(1400, 900)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.profile, ignore_errors=True)
