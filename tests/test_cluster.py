"""Tests of Dask clusters with the commands of docs/clusters.md, and of workers with another build."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import invoke
from hangs import HANG_S, wait_until
from small_sweeps import LOADS, file
from sparelane import _native
from test_sweeps import answers, dask, free_port

pytest.importorskip("distributed", reason="needs the extra dask")

OTHER_BUILD = """\
from sparelane.results import manifest

manifest.engine = lambda: "0123456789abcdef"
"""


@pytest.fixture
def cluster_of_another_build(tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler with one worker that reports another build of the simulator."""
    preload = tmp_path / "other_build.py"
    preload.write_text(OTHER_BUILD, encoding="utf-8")
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    worker = ("dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--preload", str(preload))
    with dask("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"), dask(*worker):
        wait_until(lambda: answers(port))
        yield address


@pytest.mark.parametrize("work", ["sweep", pytest.param("reproduce", marks=pytest.mark.slow)])
def test_a_worker_of_another_build_is_refused_with_both_builds(
    work: str, cluster_of_another_build: str, tmp_path: Path
) -> None:
    what = file(tmp_path, LOADS) if work == "sweep" else "rc3/example-7"
    result = invoke(work, what, "--dask", cluster_of_another_build, "-o", tmp_path / "out")
    assert result.exit_code == 2, result.output
    other = f"has another build of sparelane ({_native.__version__}, build 01234567) than the one that sends the runs"
    assert other in result.stderr
    assert "install the same wheel on all machines" in result.stderr
    assert "Traceback" not in result.output


PAGE = (Path(__file__).parents[1] / "docs" / "clusters.md").read_text(encoding="utf-8")
BLOCKS = {
    language: [
        text
        for found, text in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        if found == language
    ]
    for language in ("bash", "yaml", "docker")
}
PREPARE, START_BY_SSH, SWEEP, SLURM, KUBERNETES = BLOCKS["bash"]

# Replacements for programs of the page, so that this machine stands for all others.
STAND_INS = {
    "ssh": 'cd "$HOME" && shift 2 && sh -c "$*"',
    "srun": 'trap \'kill $first $second\' TERM; "$@" & first=$!; "$@" & second=$!; wait',
    "hostname": "echo 127.0.0.1",
    "nproc": "echo 1",
    "dask": f'exec {shlex.quote(sys.executable)} -m dask "$@"',
    "sparelane": f'exec {shlex.quote(sys.executable)} -m sparelane "$@"',
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with the program, the scenario and the names of two machines."""
    programs = tmp_path / "sparelane" / "bin"
    programs.mkdir(parents=True)
    for name, text in STAND_INS.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    (programs / "activate").write_text('PATH="$HOME/sparelane/bin:$PATH"\n', encoding="utf-8")
    (tmp_path / "hosts.txt").write_text("node-1\nnode-2\n", encoding="utf-8")
    file(tmp_path, LOADS, "load-and-buffer.toml")
    return tmp_path


def shell(home: Path, script: str) -> subprocess.Popen[str]:
    """Runs commands of the page with a free port and fewer seeds, in a separate process group."""
    script = script.replace("8786", str(free_port())).replace("--seeds 50", "--seeds 2")
    paths = [str(home / "sparelane" / "bin"), os.environ["PATH"]]
    return subprocess.Popen(
        ["bash", "-c", script],
        cwd=home,
        env={**os.environ, "HOME": str(home), "PATH": ":".join(paths), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def end(process: subprocess.Popen[str]) -> None:
    """Ends the commands and all processes that they started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("script", [f"{START_BY_SSH}{SWEEP}", SLURM], ids=["SSH", "Slurm"])
def test_sweeps_with_the_commands_of_the_page_equal_local_sweeps(script: str, home: Path, tmp_path: Path) -> None:
    process = shell(home, f"{script}\n[ $? = 0 ] && echo all done")
    try:
        found = process.communicate(timeout=HANG_S)[0] if script == SLURM else read_until_the_end(process)
    finally:
        end(process)
    assert "8 of 8 runs" in found, found
    here = invoke("sweep", home / "load-and-buffer.toml", "--seeds", "2", "-o", tmp_path / "here")
    assert here.exit_code == 0
    assert (home / "out" / "question" / "rows.parquet").read_bytes() == (
        tmp_path / "here" / "rows.parquet"
    ).read_bytes()


def read_until_the_end(process: subprocess.Popen[str]) -> str:
    """Returns the output until the commands end; workers may still be running."""
    assert process.stdout is not None
    found = ""
    for line in process.stdout:
        found += line
        if line == "all done\n":
            break
    return found


@pytest.mark.slow
def test_a_slurm_job_at_its_time_limit_keeps_finished_runs(home: Path) -> None:
    (home / "load-and-buffer.toml").write_text(LOADS.replace('"100ms"', '"40s"'), encoding="utf-8")
    process = shell(home, SLURM)
    try:
        wait_until(lambda: (home / "out" / "question" / "results.jsonl").exists())
        process.send_signal(signal.SIGTERM)
        found = process.communicate(timeout=HANG_S)[0]
    finally:
        end(process)
    assert process.returncode == 130, found
    assert "finished runs are saved" in found


def documents() -> dict[str, dict[str, Any]]:
    (text,) = BLOCKS["yaml"]
    return {f"{one['kind']} {one['metadata']['name']}": one for one in yaml.safe_load_all(text)}


def container(name: str) -> dict[str, Any]:
    (found,) = documents()[f"Deployment {name}"]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_names_in_the_files_for_kubernetes_match() -> None:
    found = documents()
    for name in ("sparelane-scheduler", "sparelane-workers"):
        spec = found[f"Deployment {name}"]["spec"]
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
        assert f"deployment/{name}" in KUBERNETES or name == "sparelane-scheduler"
    service, scheduler = found["Service sparelane-scheduler"]["spec"], found["Deployment sparelane-scheduler"]["spec"]
    assert service["selector"] == scheduler["template"]["metadata"]["labels"]
    assert "service/sparelane-scheduler" in KUBERNETES
    assert container("sparelane-workers")["command"][2] == "tcp://sparelane-scheduler:8786"
    assert container("sparelane-workers")["image"] == container("sparelane-scheduler")["image"]


@pytest.mark.slow
def test_the_containers_of_kubernetes_form_a_cluster(home: Path) -> None:
    scheduler = shlex.join(container("sparelane-scheduler")["command"])
    worker = shlex.join(container("sparelane-workers")["command"]).replace("sparelane-scheduler", "127.0.0.1")
    (sweep,) = (line for line in KUBERNETES.splitlines() if line.startswith("sparelane sweep"))
    process = shell(home, f"{scheduler} & {worker} & {worker} & {sweep}; echo all done")
    try:
        found = read_until_the_end(process)
    finally:
        end(process)
    assert "8 of 8 runs" in found, found
