"""What tests share: workers, what `make test-bpf` asks of pytest beside passing, and Ctrl-C in the background."""

import signal

import pytest

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
# Files whose tests ask about runs that are simulated once for all of them.
OF_SHARED_RUNS = {"test_charts", "test_experiments", "test_pages", "test_quick_claims"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in OF_THE_MACHINE:
            item.add_marker(pytest.mark.machine)
        elif item.path.stem in OF_SHARED_RUNS:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


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
