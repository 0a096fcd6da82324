"""Configuration shared by all tests: sets of tests, the summary of skipped tests, and Ctrl-C in the background.

A test is part of `make test` unless it is marked `slow`: `@pytest.mark.slow`, or `pytestmark = pytest.mark.slow` for a
whole file. Slow tests run in `make test-all`, which continuous integration calls.
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from wire_processes import Keys

# pytest imports readline, which sets COLUMNS for child processes, though `os.environ` does not show it. Workers of
# pytest-xdist then find it in `os.environ`. It would make printed tables that narrow.
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")

# Tests simulate, and neither read nor fill the user's cache of outcomes.
os.environ["SPARELANE_CACHE_LIMIT"] = "0B"

# Neither keys nor aliases of this user take part in tests. This folder cannot be created. A
# device in its place would make tshark crash.
os.environ["XDG_CONFIG_HOME"] = "/proc/none"

# Files whose tests measure real time, or need network namespaces or programs in the kernel. `make test` runs these
# tests one by one, after all others.
MACHINE_FILES = {
    "test_emulate",
    "test_linux_bpf",
    "test_two_sites",
    "test_wire_failures",
    "test_wire_flood",
    "test_wire_harm",
    "test_wire_mtu",
    "test_wire_namespaces",
    "test_wire_path",
}
# Files whose tests share simulation runs. One worker process takes the whole file, so that each run is simulated once.
SHARED_RUN_FILES = {"test_charts", "test_experiments", "test_pages", "test_quick_claims"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in MACHINE_FILES:
            item.add_marker(pytest.mark.machine)
        if boots_kernels(item):
            item.add_marker(pytest.mark.slow)
    leave_out_passed(config, items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives each file in `SHARED_RUN_FILES` to one process as a whole, and distributes all other tests one by one.

    pytest-xdist 3.8 has the same with `--dist loadgroup`, but its groups have no effect under pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFileIfShared(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return path if Path(path).stem in SHARED_RUN_FILES else nodeid

    return ByFileIfShared(config, log)


def boots_kernels(item: pytest.Item) -> bool:
    """Returns whether a test runs scenarios on a compiled kernel; without one it is skipped and counted."""
    return any(
        mark.args and mark.args[0] is False and "sparelane linux build" in mark.kwargs.get("reason", "")
        for mark in item.iter_markers("skipif")
    )


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """A key for each side of a transfer or tunnel."""
    return Keys(tmp_path)


# Patterns of skip reasons, and the requirement that each stands for. The first pattern that matches counts.
NEEDS = (
    (r"--rc3", "the kernel with RC3: `make test-linux-rc3`"),
    (r"sparelane linux build|no kernel to", "the kernel of `sparelane linux build`: `make test-linux`"),
    (r"without libbpf", "a build without libbpf"),
    (r"with libbpf|libelf|BTF|CAP_BPF|BPF", "a build with libbpf, root and BTF: `make test-bpf`"),
    (r"needs \S*root|root, ", "root: `sudo make test-all`"),
    (r"chromium", "chromium: `apt-get install chromium`"),
    (r"tshark", "tshark: `apt-get install tshark`"),
    (r'"ip"|\bip, tc|iproute2|network namespaces', "ip and tc: `apt-get install iproute2`"),
    (r"needs git", "git: `apt-get install git`"),
    (r"aioquic", "aioquic: `pip install aioquic`"),
    (r"SPARELANE_MAPS", "the maps of the Internet Topology Zoo: `.ci/maps`"),
    (r"^needs Linux", "Linux"),
)


def summary_of(reasons: Iterable[str]) -> list[str]:
    """Returns one line per requirement with the number of tests that it skipped, most frequent first."""
    counts: Counter[str] = Counter()
    for reason in reasons:
        need = next((need for pattern, need in NEEDS if re.search(pattern, reason)), None)
        counts[f"need {need}" if need else f"skipped: {reason}"] += 1
    lines = []
    for words, count in counts.most_common():
        line = f"{count} tests {words}" if count > 1 else f"1 test {words.replace('need ', 'needs ', 1)}"
        lines.append(line)
    return lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2].removeprefix("Skipped: ") for report in skipped if isinstance(report.longrepr, tuple)]
    for line in summary_of(reasons):
        terminalreporter.write_line(line)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--least-passed", type=int, default=0, metavar="N", help="Fail if fewer than N tests passed.")
    parser.addoption("--record-passed", type=Path, metavar="FILE", help="Write the names of passed tests to FILE.")
    parser.addoption("--without-passed", type=Path, metavar="FILE", help="Leave out the tests that FILE names.")


def leave_out_passed(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests that passed in another environment, as `--record-passed` wrote them there."""
    file = config.getoption("--without-passed")
    if file is None:
        return
    passed = set(file.read_text(encoding="utf-8").splitlines())
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
    items[:] = [item for item in items if item.nodeid not in passed]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    # Each worker sees only some of the tests; the controlling process counts all.
    if hasattr(session.config, "workerinput"):
        return
    least = session.config.getoption("--least-passed")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    names = [report.nodeid for report in reporter.stats.get("passed", [])] if reporter else []
    passed = len(names)
    if file := session.config.getoption("--record-passed"):
        file.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    if exitstatus == pytest.ExitCode.OK and passed < least:
        if reporter:
            reporter.write_line(
                f"only {passed} tests passed, {least} required; the reasons for skipped tests are above"
            )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


# A shell's background processes ignore Ctrl-C. Restore it, since tests send it to their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
