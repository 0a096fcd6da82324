"""Tests of the store of outcomes: reuse by content, damage, limits and concurrent use."""

import json
import os
import pickle
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import polars as pl
import pytest

from command_line import invoke
from sparelane.common import folders
from sparelane.papers import registry
from sparelane.papers.engine import runner, simulations
from sparelane.papers.engine import store as stores
from sparelane.papers.engine.base import Effort, Outcome, Simulation
from sparelane.papers.engine.rows import Evaluation
from sparelane.papers.engine.runner import Task
from sparelane.papers.engine.store import Store
from sparelane.results import manifest
from sparelane.uml import kernel, running

LIMIT_BYTES = 10_000_000
SHORT = ("duration=30ms",)


def short_run(seed: int, settings: Sequence[str] = SHORT) -> Simulation:
    return Simulation("rc3-internet2", tuple(settings), seed, label=f"seed {seed}")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(LIMIT_BYTES, place=tmp_path / "outcomes")


def outcomes(simulated: Sequence[Simulation], store: Store) -> dict[Simulation, Outcome]:
    """Runs simulations as an experiment does, and returns their outcomes."""
    experiment = replace(
        registry()["rc3/model"], plan=lambda effort: simulated, evaluate=lambda effort, found: Evaluation(())
    )
    task = Task(experiment, Effort("quick", seeds=1))
    [done] = runner.reproduce([task], 2, lambda share: None, store=store)
    return dict(done.outcomes)


def reused_seeds(found: dict[Simulation, Outcome]) -> set[int]:
    return {simulation.seed for simulation, outcome in found.items() if outcome.is_reused}


def assert_equal(one: Outcome, other: Outcome) -> None:
    for name in stores.TABLES:
        table: pl.DataFrame = getattr(one, name)
        assert table.schema == getattr(other, name).schema
        assert table.equals(getattr(other, name))
    assert (one.digest, one.counters, one.cpu_s) == (other.digest, other.counters, other.cpu_s)


def test_a_changed_plan_runs_only_the_simulations_that_changed(store: Store) -> None:
    first = outcomes([short_run(seed) for seed in (1, 2, 3)], store)
    assert reused_seeds(first) == set()
    second = outcomes([short_run(seed) for seed in (2, 3, 4)], store)
    assert reused_seeds(second) == {2, 3}
    for seed in (2, 3):
        assert_equal(second[short_run(seed)], first[short_run(seed)])
        assert first[short_run(seed)].flows.height > 0


def test_all_tables_come_back_with_their_types(store: Store) -> None:
    settings = ["duration=100ms", "sample={flows=[0], interval='10ms'}", "measure.delays=true", "packets.flow=0"]
    first, second = (outcomes([short_run(1, settings)], store) for _ in range(2))
    assert reused_seeds(second) == {1}
    [stored], [read] = first.values(), second.values()
    assert all(getattr(stored, name).height for name in stores.TABLES)
    assert_equal(read, stored)


@pytest.mark.parametrize(
    "settings",
    [
        ("duration=0.03s",),
        ("title=Another title", "duration='30000us'"),
        ("duration=1s", "seed=1", "duration=30ms"),
    ],
    ids=["unit", "title", "repeated"],
)
def test_a_scenario_with_another_text_and_equal_meaning_is_reused(store: Store, settings: Sequence[str]) -> None:
    outcomes([short_run(1)], store)
    assert reused_seeds(outcomes([short_run(1, settings)], store)) == {1}


def test_a_changed_scenario_is_not_reused(store: Store) -> None:
    outcomes([short_run(1)], store)
    assert reused_seeds(outcomes([short_run(1, ["duration=30.001ms"])], store)) == set()


@pytest.mark.parametrize(
    ("place", "name"), [(manifest, "engine"), (stores, "_sources")], ids=["compiled module", "Python modules"]
)
def test_outcomes_of_a_changed_program_are_not_reused(
    store: Store, monkeypatch: pytest.MonkeyPatch, place: object, name: str
) -> None:
    outcomes([short_run(1)], store)
    monkeypatch.setattr(place, name, lambda *_: "another")
    assert reused_seeds(outcomes([short_run(1)], store)) == set()
    monkeypatch.undo()
    assert reused_seeds(outcomes([short_run(1)], store)) == {1}


def test_the_sources_include_each_module_that_makes_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "sparelane"
    for name in ("__init__.py", "simulation/result.py", "common/frames.py", "papers/engine/simulations.py", "uml/x.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("old")
    monkeypatch.setattr(stores, "PACKAGE", package)
    read: Callable[[tuple[str, ...]], str] = stores._sources.__wrapped__
    simulator, linux = read(stores.SIMULATOR_SOURCES), read(stores.LINUX_SOURCES)
    (package / "uml" / "x.py").write_text("new")
    assert read(stores.SIMULATOR_SOURCES) == simulator
    assert read(stores.LINUX_SOURCES) != linux
    for name in ("simulation/result.py", "common/frames.py", "papers/engine/simulations.py"):
        before = read(stores.SIMULATOR_SOURCES)
        (package / name).write_text("new")
        assert read(stores.SIMULATOR_SOURCES) != before


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [truncated, flipped, lambda content: b"", lambda content: b"nonsense"])
def test_a_damaged_entry_is_reported_and_simulated_again(store: Store, damage: Callable[[bytes], bytes]) -> None:
    [intact] = outcomes([short_run(1)], store).values()
    [entry] = store.folder.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    [repaired] = outcomes([short_run(1)], store).values()
    assert not repaired.is_reused
    assert f'cannot read a stored outcome, so its simulation ran again: "{entry}"' in repaired.problem
    assert repaired.digest == intact.digest
    [read] = outcomes([short_run(1)], store).values()
    assert (read.is_reused, read.problem) == (True, "")


def test_a_store_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store(LIMIT_BYTES, place=tmp_path / "file")
    [outcome] = outcomes([short_run(1)], store).values()
    assert f'cannot store outcomes in "{store.folder}"' in outcome.problem
    assert outcome.flows.height > 0


def test_a_fresh_store_runs_all_simulations_and_replaces_entries(store: Store) -> None:
    outcomes([short_run(1)], store)
    [entry] = store.folder.iterdir()
    entry.write_bytes(b"nonsense")
    [found] = outcomes([short_run(1)], replace(store, is_fresh=True)).values()
    assert (found.is_reused, found.problem) == (False, "")
    assert reused_seeds(outcomes([short_run(1)], store)) == {1}


def test_the_entries_that_were_not_used_for_the_longest_time_are_removed(store: Store) -> None:
    for seed in (1, 2, 3):
        outcomes([short_run(seed)], store)
        # Times of files may be as coarse as a scheduler tick.
        for entry in store.folder.iterdir():
            about = entry.stat()
            os.utime(entry, (about.st_atime, about.st_mtime - 10))
    outcomes([short_run(1)], store)
    sizes = [entry.stat().st_size for entry in store.folder.iterdir()]
    replace(store, limit_bytes=sum(sizes) - 1).shrink()
    assert len(list(store.folder.iterdir())) == 2
    assert reused_seeds(outcomes([short_run(seed) for seed in (1, 3)], store)) == {1, 3}
    assert reused_seeds(outcomes([short_run(2)], store)) == set()


def test_the_limit_0_empties_the_store_and_stores_nothing(store: Store) -> None:
    outcomes([short_run(1)], store)
    empty = replace(store, limit_bytes=0)
    empty.shrink()
    assert list(store.folder.iterdir()) == []
    outcomes([short_run(1)], empty)
    assert list(store.folder.iterdir()) == []


def test_temporary_files_of_killed_processes_are_removed_after_a_day(store: Store) -> None:
    store.folder.mkdir()
    recent, old = (store.folder / f".{name}{folders.PARTIAL}" for name in ("recent", "old"))
    for path in (recent, old):
        path.write_bytes(b"half of an entry")
    day_ago_s = time.time() - stores.ABANDONED_S - 60
    os.utime(old, (day_ago_s, day_ago_s))
    replace(store, limit_bytes=0).shrink()
    assert (recent.exists(), old.exists()) == (True, False)


def use_all(place: Path, limit_bytes: int) -> int:
    """Reads or writes each of a few entries many times, and returns the number of problems."""
    store = Store(limit_bytes, place=place)
    outcome = simulations.simulate(short_run(1))
    found = [store.outcome(f"key{number % 5}", lambda: outcome) for number in range(200)]
    assert all(one.digest == outcome.digest and one.flows.equals(outcome.flows) for one in found)
    return sum(bool(one.problem) for one in found)


def test_two_processes_can_use_one_store(store: Store) -> None:
    [outcome] = outcomes([short_run(1)], store).values()
    [entry] = store.folder.iterdir()
    assert outcome.flows.height > 0
    # The limit holds three of five entries, so both processes write, read and remove all the time.
    limit_bytes = int(3.5 * entry.stat().st_size)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        problems = [pool.submit(use_all, store.folder, limit_bytes) for _ in range(2)]
        assert [one.result() for one in problems] == [0, 0]
    assert not list(store.folder.glob(f"*{folders.PARTIAL}"))


def test_threads_that_write_the_same_file_do_not_mix_their_contents(tmp_path: Path) -> None:
    path, barrier = tmp_path / "file", threading.Barrier(2)

    def write(content: bytes) -> None:
        def slowly(partial: Path) -> None:
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                barrier.wait()
                file.write(content)

        folders.replaced(path, slowly)

    threads = [threading.Thread(target=write, args=(content,)) for content in (b"aaaa", b"bb")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in (b"aaaaaaaa", b"bbbb")
    assert [path] == list(tmp_path.iterdir())


def test_a_store_can_be_sent_to_workers_of_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: Store = pickle.loads(pickle.dumps(Store(LIMIT_BYTES)))
    # A worker uses the cache of its own machine.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert sent.folder == tmp_path / "sparelane" / "outcomes"


ON_LINUX = """
duration = "100ms"
[topology]
kind = "dumbbell"
[scheme.flow]
controller = "cubic"
[[workload]]
kind = "bulk"
size = "20kB"
"""


def linux_key(key: str = "6.12-a", guest: str = "guest-a", text: str = ON_LINUX, seed: int = 1) -> str:
    built = kernel.Kernel(Path("linux"), Path(guest), key)
    return stores.linux_key(running.prepare(text, seed=seed, on=built).fingerprint)


def test_the_key_of_a_run_on_linux_follows_from_network_seed_and_kernel() -> None:
    assert linux_key() == linux_key(text=ON_LINUX.replace('"100ms"', '"0.1s"').replace("20kB", "20000B"))
    others = [
        linux_key("6.12-b"),
        linux_key(guest="guest-b"),
        linux_key(seed=2),
        linux_key(text=ON_LINUX.replace("20kB", "21kB")),
        linux_key(text=ON_LINUX.replace("scheme.flow", "scheme.other")),
    ]
    assert len({linux_key(), *others}) == 6


def test_a_changed_simulator_does_not_change_the_key_of_a_run_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    before = linux_key()
    monkeypatch.setattr(manifest, "engine", lambda: "another")
    assert linux_key() == before


def test_the_command_reuses_outcomes_and_prints_how_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARELANE_CACHE_LIMIT", "1MB")
    call = ("reproduce", "rc3/example-7", "--quick", "-o", str(tmp_path / "out"))
    first, second, fresh = invoke(*call), invoke(*call), invoke(*call, "--fresh")
    entries = list((tmp_path / "cache" / "sparelane" / "outcomes").iterdir())
    assert "outcomes are from the cache" not in first.stderr + fresh.stderr
    count = len(entries)
    assert f"sparelane: {count} of {count} outcomes are from the cache" in second.stderr
    runs = json.loads((tmp_path / "out" / "rc3" / "example-7" / manifest.FILE).read_text())["details"]["runs"]
    assert len(runs) == count
    entries[0].write_bytes(b"")
    damaged = invoke(*call)
    assert damaged.exit_code == 0
    assert f'sparelane: cannot read a stored outcome, so its simulation ran again: "{entries[0]}"' in damaged.stderr
    emptied = invoke(*call, "--cache-limit", "0B")
    assert "outcomes are from the cache" not in emptied.stderr
    assert list(entries[0].parent.iterdir()) == []


@pytest.mark.parametrize("text", ["lots", "10", "10s", "-1GB"])
def test_a_limit_that_is_not_a_size_is_refused(text: str) -> None:
    result = invoke("reproduce", "rc3/model", "--cache-limit", text)
    assert result.exit_code == 2
    assert "is not a size; allowed: a size such as 10GB, or 0B" in " ".join(result.stderr.split())
