"""Arguments are validated before capabilities, so a mistake has the same message on every machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bad_inputs
import run_without
import sparelane
from hangs import HANG_S
from sparelane import _native

MISTAKE = 2

RUN = bad_inputs.SWEEP.replace('["10packets", "20packets"]', '"10packets"').replace('"50ms"', '"2s"')
UNKNOWN_HOST = "host.invalid:9"
UNREACHABLE = ["--dask", "tcp://127.0.0.1:1"]
KEYS = ["--keys", "keys", "--trust", "0" * 64]

# Wrong command lines with a part of the message, by the capability that the valid command needs.
NEEDS_EXTRAS = [
    (["plot", "nowhere"], "nowhere"),
    (["plot", "empty"], "empty"),
    (["plot", "one", "-o", "x.jpg"], "x.jpg"),
    (["plot", "one", "-o", "no/such.png"], "no/such.png"),
    (["plot", "one", "--only", "nonsense"], "nonsense"),
    (["plot", "one", "--x", "queue.limit"], "--x is for sweeps"),
    (["report", "nowhere"], "nowhere"),
    (["report", "experiments", "-o", "no/such.html"], "no/such.html"),
    (["report", "experiments", "-o", "x.html", "--see", "y.md"], "--see"),
    (["list", "newrno"], 'did you mean "newreno"?'),
    (["list", "rc3/fig99"], "rc3/fig99"),
    (["reproduce", "nonsense"], "nonsense"),
    (["reproduce", "rc3/model", "--seeds", "0"], "--seeds"),
    (["reproduce", "rc3/model", "--json", "no/such.json"], "no/such.json"),
    (["reproduce", "rc3/model", "-o", "s.toml"], "s.toml"),
    (["reproduce", "rc3/model", "--dask", "nonsense"], "nonsense"),
    (["sweep", "nowhere.toml", *UNREACHABLE], "nowhere.toml"),
    (["sweep", "s.toml", *UNREACHABLE], "nothing varies"),
    (["sweep", "w.toml", *UNREACHABLE, "--set", "workload.size=3sheep"], "sheep"),
    (["sweep", "w.toml", *UNREACHABLE, "-o", "w.toml"], "w.toml"),
    (["sweep", "w.toml", "--dask", "nonsense"], "not the address of a Dask scheduler"),
]
NEEDS_KERNEL = [
    (["run", "nowhere.toml", "--on", "linux"], "nowhere.toml"),
    (["run", "s.toml", "--on", "linux", "--set", "queue.limit=3sheep"], "sheep"),
    (["run", "s.toml", "--on", "linux", "--set", "scheme.tcp.controller=cubik"], "cubik"),
    (["run", "s.toml", "--on", "linux", "--seeds", "2"], "--seeds"),
    (["run", "s.toml", "--on", "linux", "-o", "s.toml"], "s.toml"),
    (["run", "rc3-internet2", "--on", "linux"], "--on linux cannot do it"),
    (["reproduce", "linux/controllers", "--json", "no/such.json"], "no/such.json"),
    (["reproduce", "linux/nonsense"], "linux/nonsense"),
    (["linux", "build", "--jobs", "0"], "--jobs"),
]
NEEDS_ROOT = [
    (["emulate", "nowhere.toml"], "nowhere.toml"),
    (["emulate", "s.toml", "--set", "queue.limit=3sheep"], "sheep"),
    (["emulate", "s.toml", "--prefix", "a/b"], "a/b"),
    (["emulate", "s.toml", "--prefix", ""], "cannot begin the name"),
    (["emulate", "s.toml", "--for", "0"], "--for"),
    (["emulate", "s.toml", "--host", "left0", "true"], "--host NAME -- COMMAND"),
    (["harm", "--local", "--cc", "cubik"], "cubik"),
    (["harm", "--local", "--set", "levels=x"], "levels"),
    (["harm", "--local", "--dscp", "0,99"], "99"),
    (["harm", "--local", "--window", "32"], "window"),
    (["harm", "--local", "--rate", "0"], "--rate"),
    (["kernel", "load"], "PROGRAM"),
    (["kernel", "load", "rtcp", "--set", "nonsense"], "allowed: KEY=VALUE"),
    (["kernel", "watch", "-o", "samples.txt"], ".parquet or .csv"),
    (["kernel", "watch", "-o", "no/such.csv"], "no/such.csv"),
    (["kernel", "watch", "--seconds", "0"], "--seconds"),
    (["kernel", "unload"], "NAME"),
    (["kernel", "frobnicate"], "frobnicate"),
    (["linux", "frobnicate"], "frobnicate"),
]
NEEDS_NAMES = [
    (["send", *KEYS, "--cc", "cubik", "s.toml", UNKNOWN_HOST], "cubik"),
    (["send", *KEYS, "--dscp", "0,99", "s.toml", UNKNOWN_HOST], "99"),
    (["send", *KEYS, "--dscp", "3,3", "s.toml", UNKNOWN_HOST], "for two classes"),
    (["send", *KEYS, "nowhere.txt", UNKNOWN_HOST], "nowhere.txt"),
    (["send", *KEYS, "s.toml", "host:"], "HOST:PORT"),
    (["send", "--keys", "nowhere", "s.toml", UNKNOWN_HOST], "nowhere"),
    (["path", *KEYS, "--cc", "cubik", UNKNOWN_HOST], "cubik"),
    (["path", *KEYS, "--load-rate", "fast", UNKNOWN_HOST], "rate"),
    (["path", *KEYS, "host:"], "HOST:PORT"),
    (["recv", *KEYS, "--cc", "cubik", "--listen", UNKNOWN_HOST, "-o", "inbox"], "cubik"),
    (["tunnel", *KEYS, "--cc", "cubik", "--listen", UNKNOWN_HOST, "--allow", UNKNOWN_HOST], "cubik"),
    (["tunnel", *KEYS, "--cc", "cubik", "--forward", f"{UNKNOWN_HOST}={UNKNOWN_HOST}", UNKNOWN_HOST], "cubik"),
    (["harm", *KEYS, "--cc", "cubik", "--tcp", UNKNOWN_HOST, UNKNOWN_HOST], "cubik"),
    (["harm", *KEYS, "--tcp", "host", UNKNOWN_HOST], "HOST:PORT"),
]
# Command lines whose mistakes only Linux recognises: emulation, TCP controls, and programs for the kernel.
ON_LINUX = [
    (["emulate", "s.toml", "--host", "nobody", "--", "true"], "nobody"),
    (["emulate", "s.toml", "--host", "left0", "--", "no-such-program"], "no-such-program"),
    (["harm", "--local", "--tcp-cc", "nonsense"], "nonsense"),
    (["kernel", "load", "nonsense"], "nonsense"),
    (["kernel", "load", "rtcp", "--set", "nonsense=3"], "nonsense"),
    (["kernel", "load", "rtcp", "--set", "line_rate=1Gbps", "--name", "a b"], '"a b"'),
    (["kernel", "load", "rtcp", "--set", "line_rate=fast"], "fast"),
    (["kernel", "load", "rtcp", "--interface", "nonsense"], "nonsense"),
    (["kernel", "load", "rtcp", "--cgroup", "no/such/group"], "no/such/group"),
    (["kernel", "load", "rtcp", "--route", "nonsense"], "nonsense"),
    (["kernel", "load", "rtcp", "--", "no-such-program"], "no-such-program"),
    (["kernel", "unload", "nonsense"], "no controller named nonsense is loaded"),
    (["kernel", "unload", "a b"], '"a b"'),
    (["kernel", "watch", "nonsense"], "no controller named nonsense is loaded"),
]
ANYWHERE = [*NEEDS_EXTRAS, *NEEDS_KERNEL, *NEEDS_ROOT, *NEEDS_NAMES]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a scenario, a sweep, a run, a reproduction and keys."""
    (tmp_path / "s.toml").write_text(RUN, encoding="utf-8")
    (tmp_path / "w.toml").write_text(bad_inputs.SWEEP, encoding="utf-8")
    (tmp_path / "empty").mkdir()
    sparelane.run(tmp_path / "s.toml").save(tmp_path / "one")
    experiment = tmp_path / "experiments" / "rc3" / "model"
    experiment.mkdir(parents=True)
    manifest = Path(__file__).parents[1] / "results" / "rc3" / "fig8-load" / "manifest.json"
    (experiment / "manifest.json").write_bytes(manifest.read_bytes())
    _native.new_key(str(tmp_path / "keys"))
    return tmp_path


def run_lines_without(here: Path, missing: list[str], lines: list[list[str]]) -> list[tuple[int, str]]:
    """Runs command lines without these capabilities, and returns exit codes and standard error."""
    places = [str(Path(run_without.__file__).parent), str(Path(sparelane.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, run_without.__file__, *missing],
        cwd=here,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        input=json.dumps(lines),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    return [(code, answer) for code, answer in json.loads(done.stdout)]


@pytest.mark.parametrize(
    "missing",
    [
        [],
        # A system that lacks all of them finds most faults.
        *(pytest.param([name], marks=pytest.mark.slow) for name in run_without.CAPABILITIES),
        list(run_without.CAPABILITIES),
    ],
    ids=lambda missing: "all" if len(missing) > 1 else "".join(missing) or "none",
)
def test_a_mistake_is_reported_whatever_is_missing(here: Path, missing: list[str]) -> None:
    lines = ANYWHERE if "linux" in missing or sys.platform != "linux" else [*ANYWHERE, *ON_LINUX]
    before = sorted(here.rglob("*"))
    answers = run_lines_without(here, missing, [arguments for arguments, _ in lines])
    wrong = [
        (" ".join(arguments), code, answer)
        for (arguments, message), (code, answer) in zip(lines, answers, strict=True)
        if code != MISTAKE or message not in answer or "Traceback" in answer
    ]
    assert wrong == []
    assert sorted(here.rglob("*")) == before, "a refused command has left files"


@pytest.mark.parametrize(
    ("arguments", "missing", "message"),
    [
        (["plot", "one"], "extras", "pip install 'sparelane[figures]'"),
        (["report", "experiments"], "extras", "pip install 'sparelane[papers]'"),
        (["reproduce", "rc3/model"], "extras", "pip install 'sparelane[papers]'"),
        (["sweep", "w.toml", *UNREACHABLE], "extras", "pip install 'sparelane[dask]'"),
        (["run", "s.toml", "--on", "linux", "-o", "out"], "kernel", "sparelane linux build"),
        (["emulate", "s.toml"], "root", "needs root"),
        (["harm", "--local"], "root", "needs root"),
        (["emulate", "s.toml"], "linux", "needs Linux"),
        (["kernel", "doctor"], "linux", "need Linux"),
        (["linux", "build"], "linux", "need Linux"),
        (["harm", "--local"], "linux", "needs Linux"),
        (["send", *KEYS, "s.toml", UNKNOWN_HOST], "names", "host.invalid"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value)[:30],
)
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_missing_capability_is_named_if_the_arguments_are_valid(
    here: Path, arguments: list[str], missing: str, message: str
) -> None:
    [(code, answer)] = run_lines_without(here, [missing], [arguments])
    assert (code, message in answer) == (MISTAKE, True), answer


def test_the_help_of_every_linux_command_can_be_read_on_other_systems(here: Path) -> None:
    names = ["load", "unload", "list", "doctor", "watch"]
    lines = [[group, name, "--help"] for name in names for group in ("kernel", "linux")]
    lines.append(["linux", "build", "--help"])
    assert [code for code, _ in run_lines_without(here, ["linux"], lines)] == [0] * len(lines)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_former_names_of_commands_work_and_print_the_new_names(here: Path) -> None:
    lines = [[group, "load", "nonsense"] for group in ("kernel", "linux")]
    (code, answer), (former, with_remark) = run_lines_without(here, [], lines)
    assert code == former == MISTAKE
    assert with_remark == f"sparelane: `sparelane linux load` is now `sparelane kernel load`\n{answer}"
