# SPDX-License-Identifier: Apache-2.0
"""mrrope chat on a terminal: its first line, commands, Ctrl-C and history. Usage: chat_test.py MRROPE MODEL"""
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

from chat_model import CHAT, with_template

COMMAND, TINY = sys.argv[1:3]


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *arguments: str, **environment: str):
        self.seen, ours = "", pty.openpty()
        self.master = ours[0]
        self.process = subprocess.Popen([COMMAND, *arguments], stdin=ours[1], stdout=ours[1],
                                        stderr=ours[1], start_new_session=True,
                                        env={**os.environ, "TERM": "xterm", **environment})
        os.close(ours[1])

    def wait_for(self, pattern: str, seconds: float = 60) -> str:
        """Everything up to the end of the pattern, which is then forgotten."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            if time.monotonic() > end or not self._more():
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
        text, self.seen = self.seen[:found.end()], self.seen[found.end():]
        return text

    def _more(self) -> bool:
        if not select.select([self.master], [], [], 1)[0]:
            return self.process.poll() is None
        try:
            self.seen += os.read(self.master, 65536).decode(errors="replace").replace("\r\n", "\n")
            return True
        except OSError:
            return False

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        return self.process.wait(30)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        model = with_template(TINY, CHAT, folder)
        (home / "long.txt").write_text("The theorem of the lemma. " * 100)
        session = str(home / "kept.session")
        chat = Terminal("chat", model, "--ctx", "4k", "-n", "12", "--seed", "1",
                        XDG_CACHE_HOME=folder)
        first = chat.wait_for("> $")
        assert "Unmodified up to 1K. Beyond, distant text is compressed" in first, first
        assert "Reading" not in first, "nothing is known on a new machine"
        chat.type("\n")  # does nothing
        chat.wait_for("> $")
        chat.type("/help\n")
        chat.wait_for("/file PATH(.|\n)*> $")
        chat.type("/nonsense\n")
        chat.wait_for("There is no command /nonsense(.|\n)*> $")
        chat.type("Hello\n")
        chat.wait_for(r"\[\d+ of 4096 tokens\](.|\n)*> $")
        chat.type(f"/file {home}/no.txt\n")
        chat.wait_for("cannot read .*no.txt(.|\n)*> $")
        chat.type(f"/file {home}/long.txt\n")
        chat.wait_for(r"long.txt: \d+ tokens(.|\n)*> $")
        chat.type("What \\\nis it?\n")
        read = chat.wait_for(r"\[(\d+) of 4096 tokens\](.|\n)*> $")
        assert int(re.search(r"\[(\d+) of", read)[1]) > 500, read
        chat.type("/context\n")
        chat.wait_for(r"\[[=#.]+\] \d+ of 4096 tokens\n(.|\n)*# \d+ exact(.|\n)*> $")
        chat.type(f"/save {session}\n")
        chat.wait_for("Saved(.|\n)*> $")
        chat.type("/clear\n")
        chat.wait_for("forgotten(.|\n)*> $")
        chat.type("Again\n")
        short = chat.wait_for(r"\[(\d+) of 4096 tokens\](.|\n)*> $")
        assert int(re.search(r"\[(\d+) of", short)[1]) < 200, short
        os.kill(chat.process.pid, signal.SIGINT)  # at the prompt: the chat goes on
        chat.wait_for("Ctrl-D or /exit ends the chat(.|\n)*> $")
        chat.type("/exit\n")
        assert chat.end() == 0

        # What was read is remembered; the session goes on; Ctrl-C stops an answer, not the chat.
        chat = Terminal("chat", model, "--ctx", "4k", "-n", "3000", "--session", session,
                        XDG_CACHE_HOME=folder)
        first = chat.wait_for("> $")
        assert "Reading 4K takes about" in first, first
        chat.type("Go on\n")
        time.sleep(2)
        os.kill(chat.process.pid, signal.SIGINT)
        chat.wait_for(r"\[(\d+) of 4096 tokens\](.|\n)*> $")
        chat.type("\x04")
        assert chat.end() == 0
    print("ok")


if __name__ == "__main__":
    main()
