"""Finds phrases that technical English does not use, in comments, docstrings and Markdown.

People read a sentence twice if its words are unusual, or if a doc comment starts with a question word or a preposition
instead of a noun or a verb. This check counts both over all files that git tracks and fails above a limit, so that the
text of the project stays plain. It cannot judge whether a text is clear.

    python tests/prose.py                  # the whole repository
    python tests/prose.py crates/sim docs  # some folders or files

Each line of the output names a place, the phrase, and what to write instead. The exit code is 1 if a limit is exceeded.
For the whole repository, places are listed only in that case.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

# At most this many odd phrases in 10,000 words, and this share of odd openings.
MAX_PHRASES_PER_10000 = 2.0
MAX_OPENINGS = 0.06

# Folders of pages and data that programs write.
GENERATED = ("results/", "docs/generated/")

# Odd phrases and what to write instead. Each is an expression that matches whole words in any case.
PHRASES = {
    r"who(?:m|so)?ever": "name the person, program or component",
    r"nobody|somebody": "name who it is, or use the passive",
    r"(?:of|to) whom": "start a second sentence",
    r"that which": "name the thing",
    r"in vain": '"unnecessary" or "without effect"',
    r"at the most": '"at most"',
    r"so (?:many|much|often)|so long(?! as)": "state the number",
    r"so long as": '"while" or "if"',
    r"(?:is|are|was|were) (?:told|said)": '"reported", "sent" or "declared"',
    r"says? so": "state what is printed or returned",
    r"(?:hears?|heard) of": '"receives" or "is notified of"',
    r"goes by": '"uses" or "follows"',
    r"stands? beside|beside (?:it|them|ours?|theirs?|the)": '"next to" or "compared with"',
    r"(?:is|are|was|were) none": '"does not exist" or "no X"',
    r"for ever": '"forever" or "without a limit"',
    r"as it were|matter of course": "leave it out",
    r"all the same": '"equal" or "nevertheless"',
    r"of before": '"previous"',
    r"what is not": "name the thing",
    r"thereof|therein|whereof|hither|thus far": '"of it", "in it", "so far"',
    r"lest": '"so that ... not"',
    r"anew": '"again"',
    r"nought": '"zero"',
    r"be it": '"whether" or "either"',
}
_PHRASE = re.compile("|".join(rf"(?P<p{n}>\b(?:{phrase})\b)" for n, phrase in enumerate(PHRASES)), re.IGNORECASE)
_ADVICE = list(PHRASES.values())

# First words that turn a doc comment into half a sentence.
OPENINGS = frozenset(
    word.capitalize()
    for word in (
        *("what", "whether", "how", "where", "when", "which", "why", "who", "whose", "whoever", "nobody", "none"),
        *("nothing", "so", "as", "since", "of", "from", "to", "by", "in", "on", "at", "for", "with"),
    )
)


@dataclass(frozen=True)
class Passage:
    """Adjacent lines of prose from one file."""

    # The number of each line in the file, and its text without comment marks.
    lines: tuple[tuple[int, str], ...]
    # Whether it is a doc comment or a docstring.
    is_doc: bool = False


@dataclass(frozen=True)
class Finding:
    """An odd phrase or opening, with its place."""

    path: str
    line: int
    phrase: str
    advice: str
    is_opening: bool = False

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: "{self.phrase}": {self.advice}'


@dataclass
class Report:
    """The findings in a set of files, and the sizes to which they are compared."""

    findings: list[Finding]
    words: int = 0
    docs: int = 0

    def add(self, path: str, passages: Iterable[Passage]) -> None:
        """Counts the passages of one file."""
        for passage in passages:
            text = " ".join(line for _, line in passage.lines)
            self.words += len(text.split())
            self.findings += _phrases(path, passage)
            if passage.is_doc:
                self.docs += 1
                self.findings += _opening(path, passage)

    @property
    def phrases_per_10000(self) -> float:
        """The number of odd phrases in 10,000 words."""
        return 10_000 * sum(not one.is_opening for one in self.findings) / max(self.words, 1)

    @property
    def openings(self) -> float:
        """The share of doc comments and docstrings that open oddly."""
        return sum(one.is_opening for one in self.findings) / max(self.docs, 1)

    @property
    def passes(self) -> bool:
        """True if both figures are within their limits."""
        return self.phrases_per_10000 <= MAX_PHRASES_PER_10000 and self.openings <= MAX_OPENINGS

    def __str__(self) -> str:
        return (
            f"{self.phrases_per_10000:.1f} odd phrases in 10,000 words (limit: {MAX_PHRASES_PER_10000:g}); "
            f"{self.openings:.1%} odd openings of {self.docs} doc comments (limit: {MAX_OPENINGS:.0%})"
        )


def _phrases(path: str, passage: Passage) -> Iterator[Finding]:
    # Lines are joined, since a phrase may be broken over two of them; `starts` leads back from a place to its line.
    text, starts = "", []
    for _, line in passage.lines:
        starts.append(len(text))
        text += line + " "
    for match in _PHRASE.finditer(text):
        number, _ = passage.lines[bisect_right(starts, match.start()) - 1]
        advice = _ADVICE[int(str(match.lastgroup)[1:])]
        yield Finding(path, number, match[0], advice)


def _opening(path: str, passage: Passage) -> Iterator[Finding]:
    number, line = passage.lines[0]
    first = re.match(r"[A-Z][a-z]*\b", line)
    if first is not None and first[0] in OPENINGS:
        yield Finding(path, number, " ".join(line.split()[:4]), "start with a noun or a verb", is_opening=True)


def _runs(lines: Iterable[tuple[int, str, str]]) -> Iterator[tuple[str, tuple[tuple[int, str], ...]]]:
    """Groups lines (number, kind, text) whose numbers are adjacent and whose kinds are equal."""
    run: list[tuple[int, str]] = []
    kind = ""
    for number, its_kind, text in lines:
        if run and (number != run[-1][0] + 1 or its_kind != kind):
            yield kind, tuple(run)
            run = []
        kind = its_kind
        run.append((number, text))
    if run:
        yield kind, tuple(run)


def rust(text: str) -> Iterator[Passage]:
    """Yields the comments and doc comments that have lines of their own."""
    found = (
        (number, match[1], match[2])
        for number, line in enumerate(text.splitlines(), 1)
        if (match := re.match(r"\s*(//!|///?)(?!/)\s*(.*)", line))
    )
    for marks, lines in _runs(found):
        yield Passage(lines, is_doc=marks != "//")


def python(text: str) -> Iterator[Passage]:
    """Yields the docstrings and the comments."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                first = node.body[0].lineno
                yield Passage(
                    tuple((first + n, line.strip()) for n, line in enumerate(docstring.splitlines())), is_doc=True
                )
    comments = (
        (token.start[0], "#", token.string.lstrip("#!: "))
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    )
    for _, lines in _runs(comments):
        yield Passage(lines)


def hashes(text: str) -> Iterator[Passage]:
    """Yields the comments of TOML files, shell scripts and makefiles that have lines of their own."""
    lines = enumerate(text.splitlines(), 1)
    comments = ((number, "#", line.strip("# \t")) for number, line in lines if re.match(r"\s*#(?!!)", line))
    for _, run in _runs(comments):
        yield Passage(run)


def markdown(text: str) -> Iterator[Passage]:
    """Yields the paragraphs and the rows of tables, without code and without the targets of links."""
    prose: list[tuple[int, str, str]] = []
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and line.strip() and not line.startswith("    "):
            kind = "table" if line.startswith("|") else "text"
            prose.append((number, kind, re.sub(r"`[^`]*`|\]\([^)]*\)", "", line.strip())))
    for _, lines in _runs(prose):
        yield Passage(lines)


READERS: dict[str, Callable[[str], Iterator[Passage]]] = {
    ".rs": rust,
    ".py": python,
    ".md": markdown,
    ".toml": hashes,
    "Makefile": hashes,
}


def tracked(places: Sequence[str]) -> list[str]:
    """Returns the files with prose that git tracks below these places, relative to the root."""
    listed = subprocess.run(["git", "ls-files", "--", *places], cwd=ROOT, capture_output=True, text=True, check=True)
    return [
        name
        for name in listed.stdout.splitlines()
        if (Path(name).suffix or Path(name).name) in READERS
        and not name.startswith(GENERATED)
        and (ROOT / name).is_file()
        and not (ROOT / name).is_symlink()
    ]


def main(places: Sequence[str]) -> int:
    """Prints the findings below these places and the totals; returns 1 if a limit is exceeded."""
    report = Report([])
    for name in tracked(places):
        reader = READERS[Path(name).suffix or Path(name).name]
        report.add(name, reader((ROOT / name).read_text(encoding="utf-8")))
    if places or not report.passes:
        print(*report.findings, sep="\n")
    print(report)
    return 0 if report.passes else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
