"""Tests of the telemetry of `send`, `recv` and `tunnel`: time series, qlog and metrics for Prometheus."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import sparelane as sl
from hangs import HANG_S, wait_until
from sparelane.cli.main import main
from sparelane.wire import metrics_server
from sparelane.wire.metrics_server import MetricsServer
from sparelane.wire.series import SeriesFile
from sparelane.wire.telemetry import Telemetry, metrics_address
from test_traces import SCHEMA
from wire_processes import Keys, call, running

BYTES = 2_000_000


def events_of(path: Path, vantage: str = "client") -> list[dict[str, object]]:
    """Reads the events of a qlog and checks each against the drafts, and the order of each flow's events."""
    text = path.read_text()
    assert text.startswith("\x1e")
    head, *events = [json.loads(record) for record in text.split("\x1e")[1:]]
    assert (head["qlog_version"], head["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert head["trace"]["common_fields"]["time_format"] == "relative"
    assert head["trace"]["vantage_point"]["type"] == vantage
    times: dict[str, float] = {}
    for event in events:
        assert event.keys() == {"time", "name", "data", "group_id"}
        for name, value in event["data"].items():
            assert isinstance(value, SCHEMA[event["name"]][name]), event
        assert event["time"] >= times.get(event["group_id"], 0.0), event
        times[event["group_id"]] = event["time"]
    return events


def test_a_transfer_without_telemetry_loads_no_heavy_library(keys: Keys, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(BYTES))
    (tmp_path / "to").mkdir()
    with running("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to")) as receiver:
        at = receiver.until("listening")["address"]
        code = (
            "import sys; from sparelane.cli.main import main\n"
            f"main({['send', *keys.of('sender'), str(file), at]!r}, standalone_mode=False)\n"
            "print([one for one in ('polars', 'numpy', 'http.server', 'matplotlib') if one in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG_S)
    assert done.stdout.splitlines()[-1] == "[]"


def test_both_sides_of_a_transfer_record_telemetry(keys: Keys, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(BYTES))
    options = {
        side: ["--telemetry", str(tmp_path / f"{side}.parquet"), "--qlog", str(tmp_path / f"{side}.sqlog")]
        for side in ("sender", "receiver")
    }
    listen = ["--listen", "127.0.0.1:0", "-o", str(tmp_path / "to"), "--once"]
    (tmp_path / "to").mkdir()
    with running("recv", *keys.of("receiver"), *listen, *options["receiver"]) as receiver:
        at = receiver.until("listening")["address"]
        slow = ["--cc", "constant", "--set", "pace=100Mbps", "--sample-interval", "0.002"]
        report = json.loads(call("send", *keys.of("sender"), "--json", *options["sender"], *slow, str(file), at))
        receiver.rest()
    series = pl.read_parquet(tmp_path / "sender.parquet")
    simulated = sl.run("two-flows-priority", set={"duration": "50ms"}).series
    assert series.schema == simulated.schema, "the columns differ from the simulator's"

    def values(frame: pl.DataFrame, quantity: str, probe: str) -> list[float]:
        of_probe = pl.col("probe").cast(pl.String).str.contains(probe)
        return frame.filter(of_probe, pl.col("quantity") == quantity)["value"].to_list()

    assert len(values(series, "cwnd_bytes", r"^flow \d+\.\d+$")) > 20
    assert max(values(series, "srtt_s", "flow")) < 1.0
    assert values(series, "acknowledged_bytes", "association")[-1] == BYTES
    received = pl.read_parquet(tmp_path / "receiver.parquet")
    assert values(received, "delivered_bytes", "association")[-1] == BYTES
    assert not list(tmp_path.glob("*.parts"))
    counts = Counter(event["name"] for event in events_of(tmp_path / "sender.sqlog"))
    assert counts["transport:packet_sent"] == sum(report["segments_by_class"])
    assert counts["recovery:metrics_updated"] > 0
    received_counts = Counter(event["name"] for event in events_of(tmp_path / "receiver.sqlog"))
    assert received_counts["transport:packet_received"] >= BYTES // 1500


def test_a_receiver_reports_progress_during_a_transfer(keys: Keys, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(BYTES))
    (tmp_path / "to").mkdir()
    own, trusted = keys.folder["receiver"], keys.fingerprint["sender"]
    progress: list[int] = []
    made = sl.wire.Receiver("127.0.0.1:0", tmp_path / "to", keys=own, trust=[trusted], progress=progress.append)
    slow = ["--cc", "constant", "--set", "window=200", "--set", "pace=20Mbps"]
    with made as receiver:
        line = ("send", *keys.of("sender"), "--json", *slow, str(file), receiver.address)
        sending = threading.Thread(target=call, args=line)
        sending.start()
        for event in receiver.events(30):
            if event["event"] == "disconnected":
                break
        sending.join()
    assert progress
    assert any(0 < count < BYTES for count in progress), progress


def test_errors_of_gaps_are_in_the_output_the_json_and_the_series(keys: Keys, tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("one", "two", "three")]
    for name in files:
        Path(name).write_bytes(os.urandom(400_000))
    listen = ["--listen", "127.0.0.1:0", "-o", str(tmp_path / "to")]
    (tmp_path / "to").mkdir()
    with running("recv", *keys.of("receiver"), *listen) as receiver:
        at = receiver.until("listening")["address"]
        series = ["--telemetry", str(tmp_path / "series.parquet"), "--sample-interval", "0.005"]
        line = ["send", *keys.of("sender"), "--cc", "rapid", "--busy-wait", "--line-rate", "100Mbps"]
        report = json.loads(call(*line, *series, "--json", files[0], at))
        output = call(*line, files[1], at)
        without = json.loads(call("send", *keys.of("sender"), "--cc", "cubic", "--json", files[2], at))
    gaps = report["gaps"]
    assert gaps["count"] >= 400_000 // 1452
    assert 0 < gaps["median_error_s"] <= gaps["p99_error_s"]
    assert re.search(r"gaps, half of them below \d+ us: off by [\d.]+ us in the median", output)
    assert (report["line_rate_bps"], report["line_rate_source"]) == (100_000_000, "set")
    assert (without["gaps"], without["line_rate_source"]) == (None, "assumed")
    quantities = set(pl.read_parquet(tmp_path / "series.parquet")["quantity"])
    assert {"gap_s", "gap_error_s", "rate_bps"} <= quantities


# A line of the text format is a comment, or a name with labels and a number.
COMMENT = re.compile(r"# (HELP \w+ .+|TYPE \w+ (counter|gauge))")
SAMPLE = re.compile(r'(?P<name>[a-z_][a-z0-9_]*)(\{class="\d"\})? (?P<value>[0-9.e+-]+)')


def numbers(text: str) -> dict[str, float]:
    """Reads metrics and checks their format: each has its type before it, and counters end with `_total`."""
    kinds: dict[str, str] = {}
    found: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert COMMENT.fullmatch(line), line
            if line.startswith("# TYPE"):
                kinds[line.split()[2]] = line.split()[3]
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample is not None, line
        name = sample["name"]
        assert (kinds[name] == "counter") == name.endswith("_total")
        found[line.rpartition(" ")[0]] = float(sample["value"])
    return found


def fetch(address: str, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=HANG_S) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text: str = answer.read().decode()
        return text


def test_a_receiver_has_metrics_on_this_host(keys: Keys, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(BYTES))
    (tmp_path / "to").mkdir()
    options = sl.wire.Options(metrics="0")
    trust = [keys.fingerprint["sender"]]
    own = keys.folder["receiver"]
    with sl.wire.Receiver("127.0.0.1:0", tmp_path / "to", keys=own, trust=trust, options=options) as receiver:
        at = receiver.metrics_address
        assert at is not None
        assert at.startswith("127.0.0.1:")
        peer, trusted = keys.folder["sender"], [keys.fingerprint["receiver"]]
        done: list[str] = []
        to = receiver.address

        def send() -> None:
            done.extend(item.name for item in sl.wire.send([file], to, keys=peer, trust=trusted).items)

        sender = threading.Thread(target=send)
        sender.start()
        wait_until(lambda: any(event["event"] == "disconnected" for event in receiver.step()))
        sender.join()
        receiver._telemetry.collect(receiver._native, at_once=True)
        report = numbers(fetch(at))
        with pytest.raises(urllib.error.HTTPError):
            fetch(at, "/other")
    assert done == ["file"]
    assert report["sparelane_delivered_bytes_total"] == BYTES
    assert report["sparelane_associations"] == 0
    assert sum(report[f'sparelane_received_segments_total{{class="{at}"}}'] for at in range(4)) >= BYTES // 1500
    with pytest.raises(urllib.error.URLError):
        fetch(at)


def test_a_silent_client_blocks_metrics_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics_server, "CLIENT_TIMEOUT_S", 2.0)
    server = MetricsServer("127.0.0.1", 0)
    server.text = "# HELP x y\n"
    host, port = server.address.split(":")
    try:
        with socket.create_connection((host, int(port))):
            assert fetch(server.address) == server.text
    finally:
        server.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("9100", ("127.0.0.1", 9100)), ("0.0.0.0:0", ("0.0.0.0", 0)), ("127.0.0.1:9", ("127.0.0.1", 9))],
)
def test_a_port_without_an_address_is_on_loopback_only(text: str, expected: tuple[str, int]) -> None:
    assert metrics_address(text) == expected


def test_time_series_are_written_in_parts_and_joined_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "series.parquet"
    file = SeriesFile(path, part_rows=10)
    columns = sl.run("two-flows-priority", set={"duration": "20ms", "sample.interval": "1ms"})._native.series()
    for _ in range(3):
        file.add(columns)
    assert len(list(tmp_path.glob("series.parquet.parts/*.parquet"))) == 3
    assert not path.exists(), "a file has its name only when it is complete"
    file.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["series.parquet"]
    assert pl.read_parquet(path).height == 3 * len(columns["value"][0])


def test_telemetry_that_cannot_be_written_is_one_clear_error(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    listen = ["recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to")]
    gone = str(tmp_path / "none" / "file")
    assert "time series cannot be written" in call(*listen, "--telemetry", gone, code=2)
    assert f"{gone}: No such file" in call(*listen, "--qlog", gone, code=2)
    assert 'metrics at "here": allowed: PORT or ADDR:PORT' in call(*listen, "--metrics", "here", code=2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "Address already in use" in call(*listen, "--metrics", port, code=2)
    assert not list(tmp_path.glob("**/*.parts"))


def test_a_log_that_ends_early_is_an_error_at_the_end() -> None:
    class Broken:
        def take_samples(self) -> tuple[dict[str, object], int, str | None]:
            return {}, 0, "the disk is full"

        def exposition(self) -> str:
            return ""

    with pytest.raises(sl.wire.WireError, match="the qlog ended early: the disk is full"):
        Telemetry(None, None).close(Broken())  # type: ignore[arg-type]


def test_every_command_for_transfers_has_json(keys: Keys) -> None:
    report = json.loads(call("keys", "trust", "--keys", keys.folder["sender"], keys.fingerprint["receiver"], "--json"))
    assert report["trusted"] == keys.fingerprint["receiver"]
    for command in ("keys new", "keys show", "send", "recv", "tunnel", "path", "harm"):
        assert "--json" in CliRunner().invoke(main, [*command.split(), "--help"]).output, command
