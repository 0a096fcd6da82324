"""Scenarios on the real TCP of Linux: what is refused, and, where the kernel is built, what comes out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sparelane._native import LinuxError, ScenarioError
from sparelane.linux import kernel, mapping, plan, running

SCENARIO = """
title = "One flow"
duration = "30s"
seed = 3

[topology]
kind = "dumbbell"
bottleneck_rate = "100Mbps"
bottleneck_delay = "8ms"

[queue]
limit = "1000packets"

[scheme.flow]
controller = "cubic"

[[workload]]
kind = "bulk"
scheme = "flow"
size = "5MB"
"""

with_kernel = pytest.mark.skipif(kernel.find() is None, reason="there is no kernel: sparelane linux build")


def network(*settings: str) -> mapping.Network:
    return mapping.network(mapping.with_settings(SCENARIO, settings), "scenario.toml")


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ('topology={kind = "chain"}', "topology.kind"),
        ('scheme.flow.controller="rc3"', "scheme.flow.controller"),
        ("scheme.flow.class=1", "scheme.flow.class"),
        ('queue.kind="priority"', "queue.kind"),
        ('queue={kind = "red", min = "5packets", max = "15packets"}', "queue.gentle"),
        ('workload.kind="poisson"', "workload.0.kind"),
        ("transport.sack=false", "transport.sack"),
        ('sample.queues=[["west", "east"]]', "sample.queues"),
        ("measure.delays=true", "measure"),
    ],
)
def test_what_linux_cannot_do_is_refused_by_name(setting: str, named: str) -> None:
    with pytest.raises(ScenarioError, match=r"scenario\.toml: .*--on linux cannot do it; allowed: ") as caught:
        network(setting)
    assert named in str(caught.value)


def test_rates_delays_and_limits_are_those_of_the_scenario() -> None:
    lines = list(plan.lines(network('workload.start="2s"', "link={select = 'core', loss = 0.01}")))
    assert "run tc -n west qdisc add dev core root netem limit 1001 rate 100000000bit -14" in lines
    delayed = "run tc -n left0 qdisc add dev eth root netem delay 10000.000us limit 1000000 rate 1000000000bit -14"
    assert delayed in lines
    assert any("dev right0 root netem" in line and "loss 1.000000000%" in line for line in lines)
    assert "flow cubic left0 right0 10.2.0.1 2000000000 5000000" in lines


def test_settings_reach_every_entry_of_a_list_or_one() -> None:
    text = '[[workload]]\nsize = "1B"\n[[workload]]\nsize = "2B"\n'
    both = mapping.with_settings(text, ["workload.size=5B"])
    assert [entry["size"] for entry in both["workload"]] == ["5B", "5B"]
    one = mapping.with_settings(text, ["workload.1.size=5B"])
    assert [entry["size"] for entry in one["workload"]] == ["1B", "5B"]


def test_a_missing_source_package_is_named_with_the_command_that_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kernel, "ARCHIVE", tmp_path / "linux-source.tar.xz")
    with pytest.raises(LinuxError, match=r"linux-source.*apt-get install"):
        kernel.build(lambda _: None, 1)
    assert not list(tmp_path.iterdir())


def test_a_build_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "linux-source.tar.xz"
    archive.write_bytes(b"no archive")
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(kernel, "ARCHIVE", archive)
    monkeypatch.setattr(kernel, "TOOLS", ())
    monkeypatch.setattr(kernel, "_compile_guest", lambda target: target.write_text(""))
    with pytest.raises(LinuxError, match="failed at tar"):
        kernel.build(lambda _: None, 1)
    assert not list((cache / "sparelane" / "linux").iterdir())


def test_a_disk_without_room_is_named_before_anything_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "linux-source.tar.xz"
    archive.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel, "ARCHIVE", archive)
    monkeypatch.setattr(kernel, "TOOLS", ())
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))
    with pytest.raises(LinuxError, match=r"0\.0 GB are free"):
        kernel.build(lambda _: None, 1)


@with_kernel
def test_a_short_lossless_transfer_lasts_as_long_as_arithmetic_says() -> None:
    # Ten full segments are the first window: a handshake of one round trip of 20 ms, half a round trip for the data,
    # ten packets of 1500 bytes at 100 Mb/s, and one of them at each access link of 1 Gb/s.
    outcome = running.run(SCENARIO, set=["workload.size=14600B"])
    expected = 0.030 + 10 * 1500 * 8 / 100e6 + 2 * 1500 * 8 / 1e9
    assert outcome.result.flows["completion_s"][0] == pytest.approx(expected, abs=5e-5)


@with_kernel
@pytest.mark.parametrize("controller", sorted(mapping.CONTROLLERS))
def test_a_run_with_one_seed_sends_identical_packets_twice(controller: str) -> None:
    settings = [f'scheme.flow.controller="{controller}"', "workload.size=2MB", 'queue.limit="40packets"']
    settings += ['transport.ecn="dctcp"'] if controller == "dctcp" else []
    first, second = (running.run(SCENARIO, set=settings) for _ in range(2))
    assert first.packet_digest == second.packet_digest
    assert first.result.digest == second.result.digest
    assert first.packets > 2_000_000 // 1460
    assert first.result.flows["delivered_bytes"][0] == 2_000_000


@with_kernel
def test_another_seed_loses_other_packets() -> None:
    settings = ["workload.size=2MB", "link={select = 'core', loss = 0.01}"]
    first, second = (running.run(SCENARIO, set=settings, seed=seed) for seed in (1, 2))
    assert first.packet_digest != second.packet_digest


@with_kernel
@pytest.mark.parametrize("kind", ["codel", "fq-codel", "pie"])
def test_each_queue_carries_a_transfer_to_its_end(kind: str) -> None:
    outcome = running.run(SCENARIO, set=[f'queue.kind="{kind}"', "workload.size=2MB"])
    assert outcome.result.flows["delivered_bytes"][0] == 2_000_000
