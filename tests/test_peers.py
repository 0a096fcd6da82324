"""Tests of the pure parts of `make bench-peers`, and of how it finds and compiles htsim."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import htsim_build
import pytest
from htsim_build import HTSIM_SOURCES, HTSIM_VARIABLE, build_htsim_program, htsim_commit, htsim_folder
from peers_rows import ROWS, Comparison, HtsimPairs, PeersError, Round, Row, Speed, median_run
from peers_run import on_one_core, speed_from
from peers_show import htsim_table, write_json

FIELDS = {"packet_hops": 4_000_000, "events": 8_000_000, "cpu_s": 0.5, "peak_rss_mb": 4.5}
ROW = next(row for row in ROWS if row.workload == "dumbbell10" and row.long)


def speed(mhops_per_s: float, cpu_s: float = 1.0) -> Speed:
    return Speed(round(mhops_per_s * 1e6 * cpu_s), 1, cpu_s, 1.0, delivered_packets=7)


def pairs(*speeds: tuple[float, float]) -> HtsimPairs:
    return HtsimPairs(tuple(Round(speed(htsim), speed(ours)) for htsim, ours in speeds), 8)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the files of a checkout that the build needs; they have no code."""
    (tmp_path / "csg-htsim" / "sim").mkdir(parents=True)
    for name in HTSIM_SOURCES:
        (tmp_path / "csg-htsim" / "sim" / f"{name}.cpp").touch()
    return tmp_path / "csg-htsim"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


# ---- Results --------------------------------------------------------------------------------------------------------


def test_the_output_of_a_simulator_is_an_object_or_a_list_of_one() -> None:
    expected = Speed(4_000_000, 8_000_000, 0.5, 4.5)
    assert speed_from(json.dumps(FIELDS), "ns-3") == expected
    assert speed_from(json.dumps([FIELDS]), "sparelane") == expected
    assert expected.mhops_per_s == 8


def test_the_output_of_htsim_has_delivered_packets() -> None:
    assert speed_from(json.dumps({**FIELDS, "delivered_packets": 12}), "htsim").delivered_packets == 12


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", "Segmentation fault", json.dumps({**FIELDS, "cpu_s": None})])
def test_an_unreadable_output_names_the_simulator(text: str) -> None:
    with pytest.raises(PeersError, match="the output of htsim on abilene30"):
        speed_from(text, "htsim on abilene30")


def test_the_median_run_has_the_median_cpu_time() -> None:
    runs = [speed(1, cpu_s) for cpu_s in (3.0, 1.0, 2.0)]
    assert median_run(runs).cpu_s == 2
    assert median_run(runs[:2]).cpu_s == 3
    assert median_run(runs[:1]).cpu_s == 3


def test_the_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    # The ratio of the median speeds would be 40 / 4.
    measured = pairs((2, 50), (4, 40), (5, 30))
    assert measured.ratios == [6, 10, 25]
    assert Comparison(ROW, measured.sparelane, None, measured).times_htsim == 10


# ---- The claim ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "measured", "misses"),
    [
        (8.7 * 6.1, None, []),
        (8.7 * 5.9, None, ["6 x htsim as listed"]),
        (8.7 * 5.9, pairs((5, 50.1)), []),
        (8.7 * 6.1, pairs((5, 49.9)), ["10 x htsim"]),
    ],
)
def test_the_listed_speed_of_htsim_counts_only_if_htsim_did_not_run(
    ours: float, measured: HtsimPairs | None, misses: list[str]
) -> None:
    assert Comparison(ROW, speed(ours), None, measured).misses() == misses


def test_a_row_without_listed_speeds_has_only_measured_ratios() -> None:
    row = Row("made-up", 1.0, None, long=False, htsim_listed=None, ns3_listed=None)
    assert Comparison(row, speed(1), None).misses() == []
    comparison = Comparison(row, speed(1), speed(0.02), pairs((1, 9)))
    assert comparison.misses() == ["100 x ns-3", "10 x htsim"]
    assert comparison.verdict() == "fail: under 100 x ns-3, 10 x htsim"


def test_the_table_of_htsim_has_the_work_of_both() -> None:
    [cells] = zip(
        *(column.cells for column in htsim_table([(ROW, pairs((2, 50), (4, 40), (5, 30)))]).columns), strict=True
    )
    assert cells[:7] == ("dumbbell10", "10 s", "3", "40.00", "4.00", "10.00", "6.00 to 25.00")
    assert cells[7:11] == ("40,000,000", "4,000,000", "8", "7")


def test_the_json_file_has_every_round_and_the_commit(tmp_path: Path) -> None:
    measured = pairs((5, 50), (4, 48))
    write_json(tmp_path / "p.json", [Comparison(ROW, measured.sparelane, None, measured)], [], ROW, "abc")
    document = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    assert document["htsim_commit"] == "abc"
    [row] = document["rows"]
    assert row["times_htsim"] == 11
    assert [one["htsim"]["packet_hops"] for one in row["pairs"]["rounds"]] == [5_000_000, 4_000_000]


def test_rounds_use_one_core() -> None:
    before = os.sched_getaffinity(0)
    with on_one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


# ---- Finding htsim --------------------------------------------------------------------------------------------------


def test_without_option_and_variable_there_is_no_htsim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HTSIM_VARIABLE, raising=False)
    assert htsim_folder(None) is None
    monkeypatch.setenv(HTSIM_VARIABLE, "")
    assert htsim_folder(None) is None


def test_the_option_precedes_the_variable(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HTSIM_VARIABLE, str(checkout))
    assert htsim_folder(None) == checkout
    with pytest.raises(PeersError, match='--htsim: there is no folder "nowhere"'):
        htsim_folder(Path("nowhere"))


def test_a_folder_without_htsim_is_rejected(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HTSIM_VARIABLE, str(checkout / "sim"))
    with pytest.raises(PeersError, match=r"HTSIM: the folder .* because it has no sim/config\.cpp"):
        htsim_folder(None)
    (checkout / "sim" / "tcp.cpp").unlink()
    with pytest.raises(PeersError, match=r"it has no sim/tcp\.cpp"):
        htsim_folder(checkout)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_of_a_checkout_is_recorded(checkout: Path) -> None:
    git(checkout.parent, "init", "-q")
    git(checkout.parent, "add", ".")
    git(checkout.parent, "commit", "-q", "-m", "outer")
    # A copy inside another repository must not get that repository's commit.
    assert htsim_commit(checkout) == "unknown"

    git(checkout, "init", "-q")
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "inner")
    commit = git(checkout, "rev-parse", "HEAD")
    assert htsim_commit(checkout) == commit
    (checkout / "sim" / "tcp.o").write_text("an object file", encoding="ascii")
    assert htsim_commit(checkout) == commit
    (checkout / "sim" / "tcp.cpp").write_text("// changed", encoding="ascii")
    assert htsim_commit(checkout) == f"{commit} with local changes"


def test_without_git_the_commit_is_unknown(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert htsim_commit(checkout) == "unknown"


# ---- Compiling htsim ------------------------------------------------------------------------------------------------


def test_htsim_is_compiled_once_for_each_state_of_its_sources(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Sequence[str]] = []

    def compile_nothing(command: Sequence[str], _failure: str) -> str:
        compiled.append(command)
        Path(command[command.index("-o") + 1]).touch()
        return ""

    monkeypatch.setattr(htsim_build, "must_run", compile_nothing)
    monkeypatch.setattr(htsim_build, "cpp_compiler", lambda _simulator: "g++")
    monkeypatch.setattr(htsim_build, "WORK", tmp_path)

    program = build_htsim_program(checkout)
    assert program == tmp_path / "htsim_peer"
    assert program.exists()
    assert build_htsim_program(checkout) == program
    assert len(compiled) == 1
    assert "-O3" in compiled[0]
    assert str(checkout / "sim" / "tcp.cpp") in compiled[0]

    later = program.stat().st_mtime + 10
    os.utime(checkout / "sim" / "tcp.cpp", (later, later))
    build_htsim_program(checkout)
    assert len(compiled) == 2

    # Files of another checkout may be older than the program.
    os.utime(checkout / "sim" / "tcp.cpp", (0, 0))
    other = checkout.rename(tmp_path / "other")
    build_htsim_program(other)
    assert len(compiled) == 3
