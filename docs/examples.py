"""Runs the examples that the pages show, and compares or rewrites their output.

A page of documentation shows files, commands with their output, and figures. All of them go out of date when the
program changes, so the tests run each page from top to bottom in an empty folder and compare what it shows. This
script writes the outputs and the figures again after an intended change:

    python docs/examples.py                     # every page in PAGES
    python docs/examples.py docs/tutorial.md    # one page

Three kinds of fenced code blocks take part:

- `toml`, `python` and `text` blocks that start with a comment `# NAME.toml`, `# NAME.py` or `# NAME.csv` are written to
  that file.
- Other `python` blocks are executed; all blocks of a page share their variables.
- In `console` blocks, lines that start with `$ ` are commands. The lines that follow a command are its output. A line
  `...` stands for any number of omitted lines. A command without shown lines only has to succeed.

To add an example, write the command and below it a line `?`, for the whole output, or `?8`, for its first eight lines,
and run this script. A picture `figures/NAME` on a page is copied from the file NAME that a command of the page wrote.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

# Pages whose commands show their output, relative to the root of the repository.
PAGES = ("README.md", "docs/tutorial.md", "docs/recipes.md", "docs/gallery.md")

# The line that stands for omitted lines of output.
OMITTED = "..."

# Width of the terminal in which the examples run, columns.
COLUMNS = 80

# A command that takes longer than this fails, seconds.
LIMIT_S = 300

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\S+\.(?:py|toml|csv))\n")
_FIGURE = re.compile(r"\]\(((?:docs/)?figures/([\w.-]+))\)")
_PLACEHOLDER = re.compile(r"\?(\d*)")


class ExampleError(Exception):
    """Raised when an example of a page fails; the message holds the command and its output."""


@dataclass
class Command:
    """A command of a `console` block and the lines of output that the page shows, without the line ends."""

    line: str
    shown: list[str] = field(default_factory=list)

    def differs(self, printed: Sequence[str]) -> bool:
        """Returns whether the printed lines differ from the shown ones; a command without shown lines never does."""
        return bool(self.shown) and _pattern(self.shown).fullmatch("\n".join(printed)) is None

    def updated(self, printed: Sequence[str]) -> list[str]:
        """Returns the lines to show for this output, with as many lines before and after an omission as today."""
        if not self.shown:
            return []
        placeholder = _PLACEHOLDER.fullmatch(self.shown[0])
        if placeholder is not None:
            head, tail = int(placeholder[1] or len(printed)), 0
        elif OMITTED in self.shown:
            head = self.shown.index(OMITTED)
            tail = self.shown[::-1].index(OMITTED)
        else:
            return list(printed)
        if head + tail >= len(printed):
            return list(printed)
        return [*printed[:head], OMITTED, *printed[len(printed) - tail :]]


def _pattern(shown: Sequence[str]) -> re.Pattern[str]:
    """Returns the expression that an output matches, where each omission stands for any lines."""
    text = "\n".join(re.escape(line) if line != OMITTED else OMITTED for line in shown)
    # An omission includes one adjacent line break, so that it can stand for zero lines.
    for omission, expression in (
        (f"\n{OMITTED}\n", r"\n(?:.*\n)*?"),
        (f"{OMITTED}\n", r"(?:.*\n)*?"),
        (f"\n{OMITTED}", r"(?:\n.*)*"),
        (OMITTED, r"(?:.*\n)*.*"),
    ):
        text = text.replace(omission, expression)
    return re.compile(text)


def commands(block: str) -> list[Command]:
    """Returns the commands of a `console` block, each with its shown output.

    Raises:
        ExampleError: The block starts with output that belongs to no command.
    """
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ ")))
        elif found:
            found[-1].shown.append(line)
        else:
            raise ExampleError(f"the block starts with a line that is no command: {line}")
    return found


def _printed(command: Command, folder: Path) -> list[str]:
    """Runs the command in the folder and returns the lines of its standard output, without blank columns at the right.

    Raises:
        ExampleError: The program is not `sparelane`, or it failed.
    """
    program, *arguments = shlex.split(command.line, comments=True)
    if program.removeprefix(".venv/bin/") != "sparelane":
        raise ExampleError(f"examples run `sparelane` alone: {command.line}")
    environment = os.environ | {"COLUMNS": str(COLUMNS), "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "sparelane", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise ExampleError(f"$ {command.line}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return [line.rstrip() for line in done.stdout.rstrip().splitlines()]


def run(page: str, name: str, folder: Path) -> Iterator[tuple[Command, list[str]]]:
    """Runs the examples of a page in order, and yields each command with the lines that it printed.

    Args:
        page: The text of the page, Markdown.
        name: The name of the page for error messages.
        folder: An empty folder, in which files are written and commands run.

    Raises:
        ExampleError: A command failed.
    """
    shared: dict[str, Any] = {"__name__": "__example__"}
    for language, text in _BLOCK.findall(page):
        file = _FILE.match(text)
        if file is not None:
            # CSV has no comments, so the line that names the file stays out of it.
            content = text[file.end() :] if file[1].endswith(".csv") else text
            (folder / file[1]).write_text(content, encoding="utf-8")
        elif language == "python":
            with chdir(folder), redirect_stdout(io.StringIO()):
                exec(compile(text, f"<{name}>", "exec"), shared)
        elif language == "console":
            for command in commands(text):
                yield command, _printed(command, folder)


def figures(page: str) -> list[tuple[str, str]]:
    """Returns the pictures of a page that its commands make: the link, relative to the page, and the file's name."""
    return _FIGURE.findall(page)


def _console(found: Sequence[Command]) -> str:
    lines = [line for command in found for line in (f"$ {command.line}", *command.shown)]
    return "```console\n" + "\n".join(lines) + "\n```"


def update(path: Path) -> None:
    """Rewrites the outputs that a page shows, and copies the figures that its commands make."""
    page = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        outputs = iter([command.updated(printed) for command, printed in run(page, path.name, folder)])

        def rewritten(block: re.Match[str]) -> str:
            if block[1] != "console":
                return block[0]
            found = commands(block[2])
            for command in found:
                command.shown = next(outputs)
            return _console(found)

        path.write_text(_BLOCK.sub(rewritten, page), encoding="utf-8")
        for link, file in figures(page):
            target = path.parent / link
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(folder / file, target)


def main(names: Sequence[str]) -> None:
    """Rewrites the outputs of the named pages, or of all pages."""
    for name in names or PAGES:
        print(name)
        update(ROOT / name)


if __name__ == "__main__":
    main(sys.argv[1:])
