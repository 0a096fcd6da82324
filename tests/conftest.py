"""Shared parts of the tests: their sets, the summary of skipped tests, and Ctrl-C in the background.

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

# pytest-xdist sets it for its workers, and tables would be as narrow as that.
os.environ.pop("COLUMNS", None)

# Files whose tests need what a machine has once (network namespaces, programs in the kernel, real
# time): `make test` runs them alone, after all others.
OF_THE_MACHINE = {
    "test_emulate",
    "test_linux_bpf",
    "test_sweep_overhead",
    "test_wire",
    "test_wire_faults",
    "test_wire_harm",
    "test_wire_mtu",
    "test_wire_namespaces",
    "test_wire_path",
    "test_wire_telemetry",
    "test_wire_tunnel",
}
# Files whose tests share runs: one process takes the whole file, so that the runs are simulated once.
OF_SHARED_RUNS = {"test_charts", "test_experiments", "test_pages", "test_quick_claims"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in OF_THE_MACHINE:
            item.add_marker(pytest.mark.machine)
        if boots_kernels(item):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives each file of `OF_SHARED_RUNS` to one process as a whole, and all other tests one by one.

    pytest-xdist 3.8 has the same with `--dist loadgroup`, but its groups have no effect under pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFileIfShared(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return path if Path(path).stem in OF_SHARED_RUNS else nodeid

    return ByFileIfShared(config, log)


def boots_kernels(item: pytest.Item) -> bool:
    """Returns whether a test runs scenarios on a compiled kernel; without one it is skipped and counted."""
    return any(
        mark.args and mark.args[0] is False and "sparelane linux build" in mark.kwargs.get("reason", "")
        for mark in item.iter_markers("skipif")
    )


# The kinds of reasons for which tests are skipped, and what each kind needs. The first that matches counts.
NEEDS = (
    (r"--rc3", "the kernel with RC3: `make test-linux-rc3`"),
    (r"sparelane linux build|no kernel to", "the kernel of `sparelane linux build`: `make test-linux`"),
    (r"without libbpf", "a build without libbpf"),
    (r"with libbpf|libelf|BTF|CAP_BPF|BPF", "a build with libbpf, root and BTF: `make test-bpf`"),
    (r"needs \S*root|root, ", "root: `sudo make test-all`"),
    (r"chromium", "chromium: `apt-get install chromium`"),
    (r"tshark", "tshark: `apt-get install tshark`"),
    (r'"ip"|\bip, tc|iproute2|network namespaces', "ip and tc: `apt-get install iproute2`"),
    (r"SPARELANE_MAPS", "the maps of the Internet Topology Zoo: `.ci/maps`"),
    (r"^needs Linux", "Linux"),
)


def summary_of(reasons: Iterable[str]) -> list[str]:
    """One line for each thing that skipped tests need, with their number; the most frequent first."""
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
    parser.addoption("--least-passed", type=int, default=0, metavar="N", help="Fail where fewer tests than N passed.")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    # Workers see a part of the tests each.
    if hasattr(session.config, "workerinput"):
        return
    least = session.config.getoption("--least-passed")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    passed = len(reporter.stats.get("passed", [])) if reporter else 0
    if exitstatus == pytest.ExitCode.OK and passed < least:
        if reporter:
            reporter.write_line(f"only {passed} tests passed, and {least} should: see above why others were skipped")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


# Processes that a shell starts in the background ignore Ctrl-C, and so would the tests that press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
