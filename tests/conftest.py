"""What tests share: what `make test-bpf` asks of pytest beside passing, and Ctrl-C in the background."""

import signal

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--least-passed", type=int, default=0, metavar="N", help="Fail where fewer tests than N passed.")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
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
