"""Follows docs/two-sites.md between two network namespaces, with the commands as they are printed there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from command_line import SPARELANE
from hangs import HANG_S
from sparelane.emulation.namespaces import RECEIVER, Hosts, hosts, missing

PAGE = Path(__file__).parents[1] / "docs" / "two-sites.md"
WHY_NOT = missing() or (None if shutil.which("curl") else "no curl")

pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"network namespaces: {WHY_NOT}")

PROMPT = re.compile(r"    (archive|office)([$#]) (.*)")

# A filter as most distributions have it, which the rules of the page then open.
FILTER = """\
add table inet filter
add chain inet filter input { type filter hook input priority 0; policy drop; }
add rule inet filter input ct state established,related accept
add rule inet filter input iif lo accept
"""


def commands(text: str) -> Iterator[tuple[str, str, str]]:
    """Yields site, prompt and command. The lines of a here-document belong to the command before them."""
    site = prompt = command = ""
    for line in text.splitlines():
        if (found := PROMPT.fullmatch(line)) is not None:
            if command:
                yield site, prompt, command
            site, prompt, command = found.groups()
        elif command and "<<END" in command and not command.endswith("\nEND"):
            command += "\n" + line.removeprefix("    ")
        elif command:
            yield site, prompt, command
            command = ""
    if command:
        yield site, prompt, command


class Sites:
    """Both sites: a namespace and a home folder for each."""

    def __init__(self, ends: Hosts, at: Path, stack: ExitStack) -> None:
        self._ends, self._stack = ends, stack
        self._namespace = {"archive": ends.receiver, "office": ends.sender}
        self.home = {site: at / site for site in self._namespace}
        program = at / "bin" / "sparelane"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {shlex.join(SPARELANE)} "$@"\n')
        program.chmod(0o755)
        self._path = f"{program.parent}:{os.environ['PATH']}"
        for home in self.home.values():
            home.mkdir()

    def start(self, site: str, command: str) -> subprocess.Popen[str]:
        """Starts a command in the home folder of a site."""
        environment = {name: text for name, text in os.environ.items() if name != "XDG_CONFIG_HOME"}
        environment |= {"HOME": str(self.home[site]), "PATH": self._path}
        line = self._ends.command(self._namespace[site], "sh", "-ec", command)
        process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=self.home[site]
        )
        # The shell may have replaced itself by the command, so this ends both.
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def run(self, site: str, command: str) -> str:
        """Runs a command to its end and returns its output."""
        process = self.start(site, command)
        output, _ = process.communicate(timeout=HANG_S)
        assert process.returncode == 0, (command, output)
        return output


def test_the_page_connects_two_sites(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    listed = list(commands(text))
    assert len(listed) == 11
    has_filter = shutil.which("nft") is not None
    fingerprints: dict[str, str] = {}
    outputs: dict[str, str] = {}
    with ExitStack() as stack:
        ends = stack.enter_context(hosts(100, priorities=True))
        sites = Sites(ends, tmp_path, stack)
        report = bytes(range(256)) * 4000
        (sites.home["office"] / "report.pdf").write_bytes(report)
        (sites.home["archive"] / "web").mkdir()
        (sites.home["archive"] / "web" / "index.html").write_text("the archive")
        python = shlex.quote(sys.executable)
        sites.start("archive", f"exec {python} -m http.server --bind 127.0.0.1 --directory web 8080")
        if has_filter:
            subprocess.run(ends.command(ends.receiver, "nft", "-f", "-"), input=FILTER, text=True, check=True)
        for site, prompt, printed in listed:
            command = printed.replace("archive.example.org", RECEIVER)
            for name, fingerprint in fingerprints.items():
                command = command.replace(f"{name.upper()}_FINGERPRINT", fingerprint)
            if prompt == "#" and not has_filter:
                continue
            if command.startswith(("sparelane recv", "sparelane tunnel")):
                # These commands stay in the foreground. The first line says that they listen.
                process = sites.start(site, f"exec {command}")
                assert process.stdout is not None
                assert process.stdout.readline().startswith(("listening at ", "forwarding 127.0.0.1:8000 to "))
                continue
            output = sites.run(site, command)
            outputs[printed] = output
            if printed == "sparelane keys new":
                fingerprints[site] = output.split()[0]
        assert outputs["sparelane send report.pdf archive"].startswith("1 new, 0 unchanged, ")
        assert (sites.home["archive"] / "inbox" / "report.pdf").read_bytes() == report
        assert outputs["curl -s http://127.0.0.1:8000/"] == "the archive"
        # The page ends with a measurement of the path.
        assert "office$ sparelane path archive" in text
        assert "rate " in sites.run("office", "sparelane path --load 0 archive")
