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
        chat.type("\n")  # does nothing
        chat.wait_for("> $")
        chat.type("/help\n")
        chat.wait_for("/file PATH(.|\n)*> $")
        chat.type("/nonsense\n")
        chat.wait_for("Unknown command /nonsense; /help lists them(.|\n)*> $")
        chat.type("Hello\n")
        chat.wait_for(r"\[\d+ of 4096 tokens\](.|\n)*> $")
        chat.type(f"/file {home}/no.txt\n")
        chat.wait_for("cannot read .*no.txt(.|\n)*> $")
        for path, words in ((f"{home}/pipe", "a pipe or a device"), ("/dev/zero", "a pipe or a device"),
                            ("-", "cannot read .*/-"), (folder, "it is a folder"), (f"{home}/a.pdf", "pdftotext"),
                            (f"{home}/big.txt", "more than 64.0 MiB"),
                            (f"{home}/longest.txt", r"a prompt of \d+ tokens(.|\n)*give --ctx")):
            chat.type(f"/file {path}\n")
            chat.wait_for(f"{words}(.|\n)*> $")
        # Two files that do not fit together stay until they are dropped.
        for _ in range(2):
            chat.type(f"/file {home}/longer.txt\n")
            chat.wait_for(r"longer.txt: \d+ tokens(.|\n)*> $")
        chat.type("What is it?\n")
        chat.wait_for("do not fit(.|\n)*still attached; /file drops it(.|\n)*> $")
        chat.type("/file\n")
        chat.wait_for("No file is attached(.|\n)*> $")
        chat.type("/save\n")
        chat.wait_for("/save needs a path(.|\n)*> $")
        chat.type(f"/file {home}/long.txt\n")
        chat.wait_for(r"long.txt: \d+ tokens(.|\n)*> $")
        chat.type("What \\\nis it?\n")
        read = chat.wait_for(r"\[(\d+) of 4096 tokens\](.|\n)*> $")
        assert int(re.search(r"\[(\d+) of", read)[1]) > 500, read
        chat.type("/context\n")
        chat.wait_for(r"\[[=#.]+\] \d+ of 4096 tokens\n(.|\n)*# \d+ exact(.|\n)*> $")
        for path, words in ((f"{home}/none/a", "none"), (f"{home}/long.txt", "long.txt"), (model, "gguf")):
            chat.type(f"/save {path}\n")
            chat.wait_for(f"{words}(.|\n)*> $")
        assert (home / "long.txt").read_text().startswith("The theorem"), "it was not ours to replace"
        chat.type(f"/save {session}\n")
        chat.wait_for("Saved(.|\n)*> $")
        chat.type("/clear\n")
        chat.wait_for("forgotten(.|\n)*> $")
        chat.type("Again\n")
        short = chat.wait_for(r"\[(\d+) of 4096 tokens\](.|\n)*> $")
        assert int(re.search(r"\[(\d+) of", short)[1]) < 200, short
        # Ctrl-C at the prompt drops what was typed, also the lines before, and the chat goes on.
        for typed in ("", "/exi", '""" a \n b ', "a \\\n b "):
            chat.type(typed)
            chat.wait_for(re.escape(typed[-2:]) + "$")
            chat.type("\x03")
            chat.wait_for("Ctrl-D or /exit ends the chat(.|\n)*> $")
        chat.type("Größe\n")  # as the model reads it: a letter is no byte
        chat.wait_for(r"Größe(.|\n)*tokens\](.|\n)*> $")
        chat.type("/nonsense\n")
        chat.wait_for("Unknown command /nonsense;(.|\n)*> $")
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
