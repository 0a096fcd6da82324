"""`sparelane harm` on a path between namespaces of this machine."""

import json
import subprocess
import sys
from typing import Any

import pytest

from sparelane.namespaces import missing

SPARELANE = [sys.executable, "-c", "from sparelane.cli import main; main()"]
WHY_NOT = missing()


def harm(*more: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    line = ["harm", "--local", "--rate", "20", "--seconds", "1.5", "--rounds", "1", "--json", *more]
    done = subprocess.run([*SPARELANE, *line], capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


@pytest.mark.skipif(WHY_NOT is not None, reason=f"network namespaces: {WHY_NOT}")
def test_a_tcp_flow_is_measured_alone_and_beside_others() -> None:
    told: dict[str, Any] = json.loads(harm().stdout)
    assert 15e6 < told["alone"]["bps"] < 21e6, told
    for beside in ("beside_tcp", "beside"):
        assert 0 < told[beside]["bps"] < told["alone"]["bps"], told
    assert told["transfer_bps"] > 1e6
    assert told["alone"]["rtt_p99_s"] >= told["alone"]["rtt_median_s"] > 0


@pytest.mark.skipif(WHY_NOT is not None, reason=f"network namespaces: {WHY_NOT}")
def test_more_harm_than_allowed_ends_with_3_and_a_controller_that_is_not_there_with_2() -> None:
    assert "loses" in harm("--most-loss", "0.001", code=3).stderr
    assert 'no congestion control "nonesuch"' in harm("--tcp-cc", "nonesuch", code=2).stderr
    assert 'no congestion control "nonesuch"' in harm("--other-cc", "nonesuch", code=2).stderr


def test_what_is_missing_is_told() -> None:
    done = subprocess.run([*SPARELANE, "harm"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "or --local, or --serve" in done.stderr
