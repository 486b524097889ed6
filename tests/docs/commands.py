#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of README and of every page below docs, as they are printed, page by page.

    tests/docs/commands.py MRROPE [PAGE...]

A command is a line of an indented block, or of a block fenced as sh, console or bash; what a page prints below it
is not compared (tests/transcripts does that). Each page has a folder of its own. The bundled model stands for every
model that a page names; lengths beyond 4K are divided so that the longest is 4K, and there are few documents and
samples; tune stops after its estimate (--dry-run). A server stays up until the page ends, so that curl finds it. What
is not run is in commands.json, with its reason; the flags of those commands are looked up in the table of their
verb.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/mrrope-tiny.gguf"

KNOWN = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())
OTHERS = KNOWN["others"]  # programs that are not here, and why
PARSED = KNOWN["parsed"]  # commands of mrrope that only have to be right, and why: regular expressions
SHORT = KNOWN["short"]  # what is not given, or is given as more than 4, becomes this
LONGEST = 4096


def blocks(text):
    """(line number, lines) of every block of commands."""
    lines = text.split("\n")
    at, out = 0, []
    while at < len(lines):
        fence = re.match(r"^(\s*)```\s*([a-z]*)", lines[at])
        start = at + 1
        if fence:
            at += 1
            while at < len(lines) and not lines[at].lstrip().startswith("```"):
                at += 1
            if fence.group(2) in ("sh", "console", "bash"):
                out.append((start + 1, [line[len(fence.group(1)):] for line in lines[start:at]]))
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            while at < len(lines) and (lines[at].startswith("    ") or
                                       (not lines[at].strip() and lines[at + 1:at + 2] and
                                        lines[at + 1].startswith("    "))):
                at += 1
            out.append((start, [line[4:] for line in lines[start - 1:at]]))
            continue
        at += 1
    return out


def commands(text):
    """(line number, command) of a page. Lines that begin with none of the programs are what they print."""
    for start, lines in blocks(text):
        number = 0
        while number < len(lines):
            first, line = number, lines[number].removeprefix("$ ")
            while line.endswith("\\") and number + 1 < len(lines):
                number += 1
                line = line[:-1].rstrip() + " " + lines[number].strip()
            number += 1
            line = re.sub(r"\s+#.*$", "", line).strip()
            word = program(line)
            if word in ("mrrope", "curl") or word in OTHERS:
                yield start + first, line


def program(line):
    """The first word that is not a variable."""
    for word in line.split():
        if not re.match(r"^[A-Z_]+=", word):
            return word
    return ""


def table(mrrope):
    """verb -> its flags."""
    text = subprocess.run([mrrope, "--generate", "markdown"], check=True, capture_output=True, text=True).stdout
    verbs, verb = {}, ""
    for line in text.splitlines():
        if heading := re.match(r"^#+ mrrope ?(.*)$", line):
            verb = heading.group(1)
            verbs[verb] = set()
        elif row := re.match(r"^\| `(-.*?)` \| ?(.*)$", line):
            verbs[verb] |= set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", row.group(1)))
            verbs[verb] |= set(re.findall(r"^(-[a-z]+)(?= |:)", row.group(2)))
    return verbs


def verb_of(line, verbs):
    words = [w for w in line.split()[1:3] if not w.startswith("-")]
    two = " ".join(words)
    return two if two in verbs else words[0] if words and words[0] in verbs else ""


def calls(line):
    """The words of every call of mrrope in a line of the shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    out, open_ = [], False
    for word in lexer:
        if word == "mrrope":
            out.append([])
        open_ = word == "mrrope" or (open_ and not set(word) <= set(";&|()<>"))
        if open_:
            out[-1].append(word)
    return out


def parse(words, verbs):
    """Complains about a verb or flag that does not exist."""
    verb = verb_of(" ".join(words), verbs)
    if not verb and len(words) > 1 and not words[1].startswith("-") and words[1] not in ("help", "run"):
        return f"no verb {words[1]}"
    for word in words[1:]:
        flag = word.split("=")[0]
        if re.match(r"^--?[a-z]", word) and flag not in verbs[verb] | verbs[""] | {"-h"}:
            return f"mrrope {verb} has no {flag}"
    return ""


def tokens(text):
    return int(text[:-1]) * 1024 if text.endswith("k") else int(text)


def shorter(line, verb):
    """The same command on short lengths and few texts."""
    if verb.startswith("eval") or verb in ("generate", "tune", "export", "serve"):
        given = re.findall(r"--(?:ctx|lengths|length)[ =]([\dk,]+)", line)
        most = max((tokens(n) for part in given for n in part.split(",") if n), default=0)
        divisor = -(-most // LONGEST)
        if divisor > 1:
            line = re.sub(r"(--(?:ctx|lengths|length)[ =])([\dk,]+)", lambda m: m.group(1) + ",".join(
                str(tokens(n) // divisor) for n in m.group(2).split(",")), line)
            line = re.sub(r" --(min-tokens|near|train-ctx) \S+", "", line)
    if verb == "tune" and "--dry-run" not in line:  # minutes: tests/cli/tune_test.cpp searches
        line += " --dry-run"
    for flag, value in SHORT.get(verb, {}).items():
        if flag == "--depths" and " --questions " in line:  # which says where the needles are
            continue
        given = re.search(rf" {flag} (\S+)", line)
        if given is None or (given.group(1).isdigit() and value.isdigit() and int(given.group(1)) > max(4, int(value))):
            line = re.sub(rf" {flag} \S+", "", line) + f" {flag} {value}"
    return line


class Page:
    def __init__(self, mrrope, folder):
        self.folder, self.server, self.port = folder, None, 0
        (folder / "bin").mkdir()
        os.symlink(mrrope, folder / "bin/mrrope")
        self.environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
                            "XDG_CACHE_HOME": str(folder / "cache")}

    def run(self, line):
        try:
            done = subprocess.run(line, shell=True, executable="/bin/bash", cwd=self.folder, env=self.environment,
                                  text=True, timeout=600, stdin=subprocess.DEVNULL, capture_output=True)
        except subprocess.TimeoutExpired:
            return "not done after 600 s"
        return "" if done.returncode == 0 else f"exit code {done.returncode}\n{done.stdout[-800:]}{done.stderr[-800:]}"

    def fill(self, line):
        """Makes what the command reads and no command before it has made."""
        words = shlex.split(line)
        outputs = {words[i + 1] for i, w in enumerate(words[:-1]) if w in ("-o", "--out", "--svg", "--session")}
        for i, word in enumerate(words):
            path = self.folder / word
            if word in outputs or re.search(r"^-|[*?]", word) or path.exists() or "/" in word.rstrip("/") and word[0] in "/~":
                continue
            before = words[i - 1] if i else ""
            if word.endswith(".gguf"):
                path.parent.mkdir(parents=True, exist_ok=True)
                os.symlink(MODEL, path)
            elif before in ("--text", "-f", "--file", "--haystack"):
                if path.suffix == ".txt" or path.suffix == ".md":
                    path.write_text("".join(f.read_text() for f in sorted((ROOT / "data/texts").iterdir())))
                else:
                    shutil.copytree(ROOT / "data/texts", path)
            elif before == "--api-key-file":
                path.write_text("secret\n")
            elif word.endswith(".json") and ("--plan" == before or words[1] in ("plan", "export")):
                if why := self.run(f"mrrope plan {MODEL} --method pro --ctx 4k -o {word}"):
                    return why
            elif words[1] == "report" and i > 1:
                if why := self.run(f"mrrope eval ppl {MODEL} --lengths 512,2k --method none,pro --documents 1 "
                                   f"--kl-positions 0 -o {word}"):
                    return why
        return ""

    def serve(self, line):
        self.stop()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        line = re.sub(r" --(port|host) \S+", "", line) + f" --port {self.port}"
        self.server = subprocess.Popen(["/bin/bash", "-c", "exec " + line], cwd=self.folder, env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 120
        while time.monotonic() < until and self.server.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return ""
            except OSError:
                time.sleep(0.2)
        return f"the server did not start: {self.stop()}"

    def stop(self):
        if self.server is None:
            return ""
        self.server.send_signal(signal.SIGTERM)
        said = self.server.communicate(timeout=60)[1]
        self.server = None
        return said[-800:]

    def play(self, line, verb):
        if verb == "serve" and "--dry-run" not in line:
            return self.fill(line) or self.serve(shorter(line, verb))
        if program(line) == "curl":
            if self.server is None:
                return "no server runs on this page: mrrope serve comes first"
            return self.run(re.sub(r"(localhost|127\.0\.0\.1):\d+", f"127.0.0.1:{self.port}", line) + " -sS --fail-with-body")
        return self.fill(line) or self.run(shorter(line, verb))


def main():
    mrrope = pathlib.Path(sys.argv[1]).resolve()
    pages = [pathlib.Path(p).resolve() for p in sys.argv[2:]]
    made = {ROOT / "docs/reference/command-line.md"}  # its examples are parsed
    if not pages:
        pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    verbs, failed, ran, parsed = table(mrrope), 0, 0, 0
    for page in pages:
        text = page.read_text()
        if page in made:
            text = text.replace("```text", "```sh")
        with tempfile.TemporaryDirectory(prefix="mrrope-docs-") as folder:
            here = Page(mrrope, pathlib.Path(folder))
            for number, line in commands(text):
                started = time.monotonic()
                reason = next((why for form, why in PARSED if re.search(form, line)), "")
                if page in made or reason or program(line) in OTHERS or page.parent.name == "measurements":
                    parsed += 1
                    skipped = reason == "a form, not a command"
                    why = "" if skipped else next(filter(None, (parse(words, verbs) for words in calls(line))), "")
                else:
                    ran += 1
                    why = next(filter(None, (parse(words, verbs) for words in calls(line))), "")
                    why = why or here.play(line, verb_of(line, verbs))
                took = time.monotonic() - started
                if took > 10:
                    print(f"{page.name}:{number}: {took:.0f} s: {line}")
                if why:
                    failed += 1
                    print(f"{page.relative_to(ROOT) if page.is_relative_to(ROOT) else page}:{number}: {line}\n  {why}")
            here.stop()
    print(f"commands.py: {ran} commands ran, {parsed} were parsed, {failed} failed")
    sys.exit(1 if failed or (len(sys.argv) == 2 and ran < 20) else 0)


if __name__ == "__main__":
    main()
