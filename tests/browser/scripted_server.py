# SPDX-License-Identifier: Apache-2.0
"""The real server with answers from a script: everything is passed on to it, except chats for which a script
waits. Small models do not write hostile markdown when they are asked to."""

import http.server
import json
import threading
import time
import urllib.error
import urllib.request

PASSED = ("Content-Type", "Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy")


class ScriptedServer:
    """script() sets the steps of the next answer: a text, or a pair of a kind and a value."""

    def __init__(self, address):
        self.real = address
        self.scripts = []
        self.asked = []          # bodies of chats
        self.hung_up = threading.Event()  # the page closed the connection of a scripted answer
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.pass_on(self, None)

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if not self.path.endswith("/completions"):
                    return outer.pass_on(self, body)
                outer.asked.append(json.loads(body))
                if not outer.scripts:
                    return outer.pass_on(self, body)
                try:
                    outer.play(self, outer.scripts.pop(0))
                except (BrokenPipeError, ConnectionResetError):
                    outer.hung_up.set()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def script(self, *steps):
        self.hung_up.clear()
        self.scripts.append(steps)

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def pass_on(self, handler, body):
        request = urllib.request.Request(self.real + handler.path, data=body)
        if body is not None:
            request.add_header("Content-Type", "application/json")
        try:
            reply = urllib.request.urlopen(request, timeout=120)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            handler.send_response(reply.status)
            for name in PASSED:
                if name in reply.headers:
                    handler.send_header(name, reply.headers[name])
            handler.end_headers()
            try:
                while part := reply.read1(65536):
                    handler.wfile.write(part)
                    handler.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):
                pass  # the page stopped: so does the real server, once this connection is closed

    @staticmethod
    def play(handler, steps):
        place = {"rung": 0, "rungs": 9, "scale": 1.0, "length": 10}

        def event(text):
            handler.wfile.write(text.encode())
            handler.wfile.flush()

        def chunk(delta, finish=None, **more):
            event("data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
                                         "mrrope": place, **more}) + "\n\n")
        begun = False
        for step in steps:
            kind, value = ("text", step) if isinstance(step, str) else step
            if kind == "status":
                status, message = value
                handler.send_response(status)
                handler.send_header("Content-Type", "application/json")
                handler.end_headers()
                return event(message)
            if not begun:
                handler.send_response(200)
                handler.send_header("Content-Type", "text/event-stream")
                handler.end_headers()
                begun = True
            if kind == "text":
                place["length"] += 1
                chunk({"content": value})
            elif kind == "reasoning":
                chunk({"reasoning_content": value})
            elif kind == "progress":
                processed, total, cache, milliseconds = value
                left = milliseconds / 1000 * (total - processed) / max(1, processed - cache)
                chunk({"content": None}, prompt_progress={"total": total, "cache": cache, "processed": processed,
                                                          "time_ms": milliseconds, "seconds_left": left})
            elif kind == "wait":
                # Small comments on the way, so that a closed connection is noticed.
                end = time.monotonic() + value
                while time.monotonic() < end:
                    event(": \n\n")
                    time.sleep(0.05)
            elif kind == "error":
                return event("data: " + json.dumps({"error": {"message": value}}) + "\n\ndata: [DONE]\n\n")
            elif kind == "break":
                return
            elif kind == "finish":
                chunk({}, value)
        if not (isinstance(steps[-1], tuple) and steps[-1][0] == "finish"):
            chunk({}, "stop")
        event("data: [DONE]\n\n")
