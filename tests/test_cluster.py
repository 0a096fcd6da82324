"""Dask clusters whose workers are not built alike."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from small_sweeps import LOADS, file
from sparelane import _native
from test_sweeps import answers, dask, free_port, invoke, wait_until

pytest.importorskip("distributed", reason="needs the extra dask")

OTHER_BUILD = """\
from sparelane.results import manifest

manifest.engine = lambda: "0123456789abcdef"
"""


@pytest.fixture
def cluster_of_another_build(tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler, whose one worker says that its simulator is another one."""
    preload = tmp_path / "other_build.py"
    preload.write_text(OTHER_BUILD, encoding="utf-8")
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    worker = ("dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--preload", str(preload))
    with dask("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"), dask(*worker):
        wait_until(lambda: answers(port))
        yield address


@pytest.mark.parametrize("work", ["sweep", "reproduce"])
def test_a_worker_of_another_build_is_refused_and_told_from_this_one(
    work: str, cluster_of_another_build: str, tmp_path: Path
) -> None:
    what = file(tmp_path, LOADS) if work == "sweep" else "rc3/example-7"
    result = invoke(work, what, "--dask", cluster_of_another_build, "-o", tmp_path / "out")
    assert result.exit_code == 2, result.output
    other = f"has another build of sparelane ({_native.__version__}, build 01234567) than the one that sends the runs"
    assert other in result.stderr
    assert "install the same wheel on all machines" in result.stderr
    assert "Traceback" not in result.output
