# SPDX-License-Identifier: Apache-2.0
"""./run and the command it becomes: exit status, signals, what a crash says.

run_test.py ROOT MRROPE
"""
import contextlib
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT, MRROPE = (pathlib.Path(argument) for argument in sys.argv[1:])


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mrrope-run-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copy(ROOT / "run", self.root)
        (self.root / "tools").mkdir()
        shutil.copy(ROOT / "tools/watched.sh", self.root / "tools")
        self.write("tools/ninja", "exit 0")  # there is nothing to build
        for preset in ("release", "portable"):
            self.write(f"build/{preset}/build.ninja", "")
        self.environment = {**os.environ, "PATH": f"{self.root / 'tools'}:{os.environ['PATH']}"}

    def write(self, name, script):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def start(self, *arguments, preset="release"):
        command = self.root / "build" / preset / "bin/mrrope"
        command.parent.mkdir(parents=True, exist_ok=True)
        if not command.exists():
            command.symlink_to(MRROPE)
        return subprocess.Popen([self.root / "run", *arguments], env=self.environment, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def signalled(self, name, *flags, **options):
        process = self.start(*flags, "serve", ROOT / "models/mrrope-tiny.gguf", "--port", "0", "--ctx", "1k", **options)
        seen = ""
        while "http://" not in seen:  # it listens
            line = process.stdout.readline()
            self.assertNotEqual(line, "", seen)
            seen += line
        process.send_signal(signal.Signals[f"SIG{name}"])
        _, err = process.communicate(timeout=60)
        return process.returncode, err

    def test_a_pipe_gets_a_line_while_it_builds_and_ends_with_the_command(self):
        self.write("tools/ninja", "echo '[1/4] compiling'; sleep 15")
        process = self.start("--version")
        process.wait(timeout=60)
        out, err = process.communicate(timeout=5)  # nothing else holds the pipe
        self.assertRegex(err, r"25%  building build/release, step 1 of 4, 1\d s\n")
        self.assertTrue(out.startswith("mrrope "), out)

    def on_terminal(self, *arguments):
        """Exit status, and what a terminal shows."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([self.root / "run", *arguments], env={**self.environment, "TERM": "xterm"},
                                   stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(ours, 4096):
                shown += part
        os.close(ours)
        return process.wait(), shown.decode()

    def test_a_terminal_shows_a_bar_and_errors(self):
        self.write("tools/ninja", "for i in 1 3; do echo \"[$i/4] compiling $i\"; sleep 3; done")
        status, shown = self.on_terminal("build")
        self.assertEqual(status, 0)
        self.assertRegex(shown, r"\r\[#####---------------\] 25%  building build/release, step 1 of 4, \d s\x1b\[K")
        self.assertRegex(shown, r"\[###############-----\] 75%  .*, step 3 of 4, \d+ s, \d+ s left\x1b\[K\r")
        self.assertTrue(shown.endswith("\r\x1b[K"), shown)
        self.write("tools/ninja", "echo '[1/4] fine'; echo 'FAILED: one.o'; echo 'one.cpp: error: no'; exit 1")
        status, shown = self.on_terminal("build")
        self.assertEqual(status, 1)
        self.assertTrue(shown.endswith("FAILED: one.o\r\none.cpp: error: no\r\n"), shown)
        self.write("tools/ninja", "exit 0")
        status, shown = self.on_terminal("build")
        self.assertEqual((status, shown[-4:]), (0, "\r\x1b[K"))

    def test_a_crash_says_which_signal_and_what_to_type(self):
        for name in ("ILL", "SEGV", "ABRT", "BUS", "FPE"):
            with self.subTest(name):
                number = signal.Signals[f"SIG{name}"]
                status, err = self.signalled(name)
                self.assertEqual(status, -number)
                self.assertIn(f"mrrope: ended by signal {int(number)} (SIG{name})\n", err)
                self.assertEqual(f"{self.root}/run --portable serve" in err, name == "ILL")

    def test_portable_builds_do_not_name_themselves(self):
        status, err = self.signalled("ILL", "--portable", preset="portable")
        self.assertEqual(status, -signal.SIGILL)
        self.assertIn("SIGILL", err)
        self.assertNotIn("--portable", err)

    def test_the_end_is_the_commands(self):
        for arguments, status in ((["--version"], 0), (["plan", "--nonsense"], 2)):
            process = self.start(*arguments)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, status)
        self.assertEqual(self.signalled("TERM")[0], 0)


unittest.main(argv=sys.argv[:1])
