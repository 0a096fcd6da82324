"""Tests of warnings about runs: unfinished flows, settings without effect, and possible artefacts."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import sparelane
from sparelane.cli.main import main
from sparelane.simulation import warnings as run_warnings

BULK = """\
title = "equal flows"
duration = "{duration}"

[topology]
kind = "dumbbell"
pairs = 4
access_rate = "{access}"
bottleneck_rate = "100Mbps"
bottleneck_delay = "5ms"

[queue]
limit = "100packets"

[scheme.cubic]
controller = "cubic"

[workload]
kind = "bulk"
size = "{size}"
start = "{start}"
"""


def warnings_of(
    *, duration: str = "1s", access: str = "1Gbps", size: str = "10kB", start: str = "0s", more: str = ""
) -> str:
    text = BULK.format(duration=duration, access=access, size=size, start=start)
    return "; ".join(sparelane.run(text + more).warnings)


def test_a_run_without_surprises_has_no_warning() -> None:
    assert warnings_of() == ""


def test_unfinished_flows_are_a_warning() -> None:
    assert "4 of 4 flows had not finished" in warnings_of(size="1GB")


def test_flows_that_deliver_nothing_are_a_warning_with_the_time_that_they_had() -> None:
    # Two round trips, of which the first is the handshake, take more than 20 ms.
    assert "4 of 4 flows delivered nothing; the first of them started 0.01 s before the end" in warnings_of(
        start="990ms"
    )


def test_a_workload_that_starts_after_the_end_is_a_warning() -> None:
    assert warnings_of(start="2s") == (
        "workload starts no flow: its first one would start at 2s, and the run ends at 1s; "
        "no flow started by the end of the run, 1 s"
    )


def test_a_sampled_flow_that_never_starts_is_a_warning() -> None:
    assert "[sample] names flows 4, 9; only 4 flows started" in warnings_of(more="[sample]\nflows = [0, 4, 9]\n")


@pytest.mark.parametrize(("access", "is_warned"), [("100Mbps", True), ("1Gbps", False)])
def test_phase_effects_are_a_warning_if_hosts_send_at_the_bottlenecks_rate(access: str, is_warned: bool) -> None:
    assert ("phase effect" in warnings_of(duration="20s", access=access, size="unlimited")) is is_warned


# At every rate, the queue has 100 packets, the round trip 80, and the run 100,000.
SYNCHRONIZED = """\
duration = "{duration_ps}ps"
[topology]
kind = "{kind}"
{hosts}
[queue]
limit = "100packets"
[scheme.reno]
controller = "newreno"
[workload]
kind = "bulk"
pairs = {pairs}
"""


def synchronized(kind: str, rate_bps: int) -> str:
    """Returns a scenario with four flows that send at exactly the rate of their bottleneck."""
    packet_ps = 1500 * 8 * 10**12 // rate_bps
    if kind == "dumbbell":
        rates = f'pairs = 4\naccess_rate = "{rate_bps}bps"\nbottleneck_rate = "{rate_bps}bps"\n'
        hosts, pairs = f'{rates}access_delay = "0s"\nbottleneck_delay = "{40 * packet_ps}ps"', '"halves"'
    else:
        hosts = f'hosts = 5\nrate = "{rate_bps}bps"\ndelay = "{20 * packet_ps}ps"'
        pairs = '[["h2", "h1"], ["h3", "h1"], ["h4", "h1"], ["h5", "h1"]]'
    return SYNCHRONIZED.format(duration_ps=100_000 * packet_ps, kind=kind, hosts=hosts, pairs=pairs)


def use_and_fairness(result: sparelane.Result) -> tuple[float, float]:
    """Returns the utilisation of the busiest link, and Jain's index of the flows' bytes."""
    sent, rate = (result.links[name].to_numpy().astype(float) for name in ("sent_bytes", "rate_bps"))
    bytes_ = result.flows["delivered_bytes"].to_numpy().astype(float)
    use = float((8 * sent / rate).max()) / result.totals["end_s"]
    return use, float(bytes_.sum() ** 2 / (len(bytes_) * (bytes_**2).sum()))


@pytest.mark.parametrize("kind", ["dumbbell", "star"])
@pytest.mark.parametrize("rate_bps", [10**7, 10**8, 10**9, 10**10, 10**11])
def test_the_advice_against_phase_effects_removes_them_and_keeps_the_link_busy(kind: str, rate_bps: int) -> None:
    text = synchronized(kind, rate_bps)
    before = sparelane.run(text)
    (advice,) = (warning for warning in before.warnings if "phase effect" in warning)
    key, _, value = advice.rpartition("--set ")[2].partition("=")
    after = sparelane.run(text, set={key: value})
    assert not [warning for warning in after.warnings if "phase effect" in warning]
    (use_before, fairness_before), (use_after, fairness_after) = use_and_fairness(before), use_and_fairness(after)
    assert fairness_before < 0.5 < 0.9 < fairness_after
    assert use_after > use_before - 0.01


def test_a_workload_that_starts_after_the_end_of_others_is_a_warning() -> None:
    late = '[[workload]]\nkind = "bulk"\nsize = "10kB"\nstart = "2s"\n'
    text = BULK.replace("[workload]", "[[workload]]").format(duration="1s", access="1Gbps", size="10kB", start="0s")
    assert sparelane.run(text + late).warnings == [
        "workload.1 starts no flow: its first one would start at 2s, and the run ends at 1s"
    ]


STEP = BULK.format(duration="20s", access="100Mbps", size="unlimited", start="0s") + "[sample]\nflows = [9]\n"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns the output of each way to simulate a scenario or to show its results."""
    here = tmp_path_factory.mktemp("outputs")
    (here / "s.toml").write_text(STEP)
    schemes = STEP.replace("[workload]", '[scheme.reno]\ncontroller = "newreno"\n\n[workload]')
    (here / "w.toml").write_text(schemes)

    def output(*arguments: object) -> str:
        done = CliRunner().invoke(main, [str(word) for word in arguments])
        assert done.exit_code == 0, done.output
        return " ".join(done.output.split())

    found = {
        "run": output("run", here / "s.toml", "-o", here / "run"),
        "run --seeds": output("run", here / "s.toml", "--seeds", 2, "-o", here / "seeds"),
        "sweep": output("sweep", here / "w.toml", "--seeds", 2, "-o", here / "sweep"),
        "compare": output("compare", here / "sweep"),
        "check": output("check", here / "s.toml"),
        "notebook": sparelane.run(here / "s.toml")._repr_html_(),
    }
    for name in ("run", "sweep"):
        output("report", here / name)
        found[f"report of a {name}"] = (here / name / "report.html").read_text()
    return found


WAYS = ("run", "run --seeds", "sweep", "compare", "check", "notebook", "report of a run", "report of a sweep")


@pytest.mark.parametrize("way", WAYS)
def test_every_output_of_a_run_has_its_warnings(outputs: dict[str, str], way: str) -> None:
    assert "a phase effect, not a property of the controller" in outputs[way]
    assert "[sample] names flow 9" in outputs[way]


@pytest.mark.parametrize(
    ("way", "runs"), [("run --seeds", "in all 2 runs"), ("sweep", "in all 4 runs"), ("compare", "in all 4 runs")]
)
def test_each_warning_of_many_runs_is_printed_once_with_their_number(
    outputs: dict[str, str], way: str, runs: str
) -> None:
    assert outputs[way].count(f"{runs}: [sample] names flow 9") == 1
    assert outputs[way].count("[sample] names flow 9") == 1


def test_a_saved_run_keeps_its_warnings(tmp_path: Path) -> None:
    result = sparelane.run(STEP, set={"duration": "1s"})
    result.save(tmp_path)
    assert result.warnings
    assert sparelane.simulation.simulate.saved_run(tmp_path / "run.json")["warnings"] == result.warnings


def test_the_former_name_of_warnings_still_works_and_is_deprecated() -> None:
    result = sparelane.run(STEP, set={"duration": "1s"})
    with pytest.deprecated_call():
        assert result.notices == result.warnings


def test_warnings_of_the_command_line_are_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(STEP.replace("20s", "1s"))
    for arguments in (["run", tmp_path / "s.toml", "-o", tmp_path / "o"], ["check", tmp_path / "s.toml"]):
        done = CliRunner().invoke(main, [str(word) for word in arguments])
        assert "warning: [sample] names flow 9; only 4 flows started, numbered from 0\n" in done.stderr
        assert "warning: " not in done.stdout


CHANGE = """\
[[change]]
at = "500ms"
between = ["west", "east"]
rate = "5Mbps"
"""


@pytest.mark.parametrize("command", ["run", "check", "sweep"])
@pytest.mark.parametrize("name", ["change", "emulate.change"])
def test_every_command_accepts_links_that_change(command: str, name: str, tmp_path: Path) -> None:
    text = BULK.format(duration="1s", access="1Gbps", size="10kB", start="0s")
    (tmp_path / "s.toml").write_text(text + CHANGE.replace("change", name))
    arguments = [command, str(tmp_path / "s.toml")]
    arguments += ["--seeds", "2"] if command == "sweep" else []
    arguments += ["-o", str(tmp_path / "o")] if command != "check" else []
    taken = CliRunner().invoke(main, arguments)
    assert taken.exit_code == 0, taken.output
    assert "no effect" not in taken.stderr


def test_a_change_after_the_end_of_the_run_is_a_warning(tmp_path: Path) -> None:
    text = BULK.format(duration="1s", access="1Gbps", size="10kB", start="0s")
    (tmp_path / "s.toml").write_text(text + CHANGE.replace("500ms", "1s"))
    checked = CliRunner().invoke(main, ["check", str(tmp_path / "s.toml")])
    assert "warning: change.0 has no effect: the run ends at 1s\n" in checked.stderr


def test_the_two_ends_of_a_cable_are_not_an_axis_in_any_table() -> None:
    from sparelane.sweeps.plan import Plan

    text = BULK.format(duration="1s", access="1Gbps", size="10kB", start="0s") + CHANGE
    plan = Plan(text, "s.toml", Path(), settings=['queue.limit=["10packets", "20packets"]'])
    assert [axis.key for axis in plan.axes] == ["queue.limit"]


def test_a_cable_without_packets_and_hosts_without_flows_are_warnings() -> None:
    more = """\
[[link]]
between = ["left3", "west"]
delay = "3ms"
[[host_at]]
hosts = ["right3"]
ack_cost = "5us"
[[drop]]
from = "west"
to = "left3"
segments = [3]
"""
    text = BULK.replace("[workload]", "[workload]\nflows = 3")
    text = text.format(duration="1s", access="1Gbps", size="10kB", start="0s")
    found = sparelane.run(text + more).warnings
    assert found == [
        "host_at has no effect: its hosts neither send nor receive",
        "link: no packet came to the cable between left3 and west",
        "drop has no effect: no packet came to the queue from west to left3",
    ]


def test_a_sweep_names_only_schemes_that_no_run_has() -> None:
    unused = run_warnings.UNUSED_SCHEMES
    counts = run_warnings.counted([[f"{unused}a, c", "other"], [f"{unused}b, c"]])
    assert counts == [{"text": "other", "runs": 1}, {"text": f"{unused}c", "runs": 2}]


def test_a_sweep_over_a_key_without_effect_has_one_warning(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(BULK.format(duration="1s", access="1Gbps", size="10kB", start="0s"))
    values = 'queue.mark_at=["5packets", "9packets"]'
    arguments = ["sweep", tmp_path / "s.toml", "--set", values, "--seeds", 2, "-o", tmp_path / "o"]
    done = CliRunner().invoke(main, [str(word) for word in arguments])
    reason = "no scheme is ECN-capable; transport.ecn makes one so"
    assert done.stderr.count("warning: ") == 1
    assert f"warning: in all 4 runs: queue.mark_at has no effect: {reason}\n" in done.stderr
