# SPDX-License-Identifier: Apache-2.0
"""./run and the command it becomes: exit status, signals, what a crash says.

run_test.py ROOT MRROPE
"""
import os
import pathlib
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

    def test_says_how_much_there_is_to_build(self):
        self.write("tools/ninja", 'case "$*" in *-n*) echo "[1/2] one"; echo "[2/2] two" ;; esac')
        out, err = self.start("--version").communicate(timeout=60)
        self.assertIn("building build/release: 2 steps\n", err)
        self.assertTrue(out.startswith("mrrope "), out)

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
