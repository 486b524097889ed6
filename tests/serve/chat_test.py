# SPDX-License-Identifier: Apache-2.0
"""mrrope chat on a terminal: its first line, commands, Ctrl-C and history. Usage: chat_test.py MRROPE MODEL"""
import codecs
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time

from chat_model import CHAT, with_template

COMMAND, TINY = sys.argv[1:3]


def controls() -> None:
    """The terminal sends its signals, such as that of Ctrl-C, to this process."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *arguments: str, **environment: str):
        self.seen, ours = "", pty.openpty()
        self.master, self.decoder = ours[0], codecs.getincrementaldecoder("utf-8")("replace")
        self.process = subprocess.Popen([COMMAND, *arguments], stdin=ours[1], stdout=ours[1],
                                        stderr=ours[1], start_new_session=True, preexec_fn=controls,
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
            self.seen += self.decoder.decode(os.read(self.master, 65536)).replace("\r\n", "\n")
            return True
        except OSError:
            return False

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def ask(self, line: str, pattern: str = "") -> str:
        """Types a line; what is shown up to the next prompt, with the pattern in it."""
        self.type(line + "\n")
        return self.wait_for(pattern + r"(.|\n)*> $")

    def end(self) -> int:
        return self.process.wait(30)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        model = with_template(TINY, CHAT, folder)
        (home / "long.txt").write_text("The theorem of the lemma. " * 100)
        (home / "longer.txt").write_text("The theorem of the lemma. " * 400)
        (home / "longest.txt").write_text("The theorem of the lemma. " * 1000)
        (home / "big.txt").write_bytes(b"a" * ((64 << 20) + 1))
        (home / "a.pdf").write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
        os.mkfifo(home / "pipe")
        session = str(home / "kept.session")
        chat = Terminal("chat", model, "--ctx", "4k", "-n", "12", "--seed", "1",
                        XDG_CACHE_HOME=folder)
        first = chat.wait_for("> $")
        assert "Unmodified up to 1K. Beyond, distant text is compressed" in first, first
        assert "Reading" not in first, "nothing is known on a new machine"
        chat.ask("")  # does nothing
        chat.ask("/help", "/file PATH")
        chat.ask("/nonsense", "Unknown command /nonsense; /help lists them")
        chat.ask("Hello", r"\[\d+ of 4096 tokens\]")
        chat.ask(f"/file {home}/no.txt", "cannot read .*no.txt")
        for path, words in ((f"{home}/pipe", "a pipe or a device"), ("/dev/zero", "a pipe or a device"),
                            ("-", "cannot read .*/-"), (folder, "it is a folder"), (f"{home}/a.pdf", "pdftotext"),
                            (f"{home}/big.txt", "more than 64.0 MiB"),
                            (f"{home}/longest.txt", r"a prompt of \d+ tokens(.|\n)*give --ctx")):
            chat.ask(f"/file {path}", words)
        # Two files that do not fit together stay until they are dropped.
        for _ in range(2):
            chat.ask(f"/file {home}/longer.txt", r"longer.txt: \d+ tokens")
        chat.ask("What is it?", "do not fit(.|\n)*still attached; /file drops it")
        chat.ask("/file", "No file is attached")
        chat.ask("/save", "/save needs a path")
        chat.ask(f"/file {home}/long.txt", r"long.txt: \d+ tokens")
        read = chat.ask("What \\\nis it?", r"\[(\d+) of 4096 tokens\]")
        assert int(re.search(r"\[(\d+) of", read)[1]) > 500, read
        chat.ask("/context", r"\[[=#.]+\] \d+ of 4096 tokens\n(.|\n)*# \d+ exact")
        for path, words in ((f"{home}/none/a", "none"), (f"{home}/long.txt", "long.txt"), (model, "gguf")):
            chat.ask(f"/save {path}", words)
        assert (home / "long.txt").read_text().startswith("The theorem"), "it was not ours to replace"
        chat.ask(f"/save {session}", "Saved")
        chat.ask("/clear", "forgotten")
        short = chat.ask("Again", r"\[(\d+) of 4096 tokens\]")
        assert int(re.search(r"\[(\d+) of", short)[1]) < 200, short
        # Ctrl-C at the prompt drops what was typed, also the lines before, and the chat goes on.
        for typed in ("", "/exi", '""" a \n b ', "a \\\n b "):
            chat.type(typed)
            chat.wait_for(re.escape(typed[-2:]) + "$")
            chat.type("\x03")
            chat.wait_for("Ctrl-D or /exit ends the chat(.|\n)*> $")
        chat.ask("Größe", r"Größe(.|\n)*tokens\]")  # as the model reads it: a letter is no byte
        chat.ask("/nonsense", "Unknown command /nonsense;")
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
