"""Tests of requests and their completion."""

import polars as pl
import pytest

import sparelane
from sparelane.simulation.requests import request_table

# Two clients of a testbed that fetch from the same three servers.
TWO_CLIENTS = """\
duration = "1s"

[topology]
kind = "star"

[scheme.tcp]
controller = "newreno"

[[workload]]
kind = "requests"
clients = ["h1", "h2"]
servers = ["h3", "h4", "h5"]
load = 0.2
end = "400ms"
sizes = { kind = "fixed", size = "50kB" }
fan_out = [{ flows = 1, share = 0.5 }, { flows = 2, share = 0.3 }, { flows = 8, share = 0.2 }]

[[workload]]
kind = "requests"
clients = ["h5"]
servers = ["h4"]
load = 0.1
end = "400ms"
sizes = { kind = "web-search" }

[[workload]]
kind = "bulk"
pairs = [["h3", "h4"]]
size = "1kB"
"""


@pytest.fixture(scope="module")
def result() -> sparelane.Result:
    return sparelane.run(TWO_CLIENTS)


def test_a_request_ends_with_its_last_flow(result: sparelane.Result) -> None:
    flows = result.flows
    for row in result.requests.iter_rows(named=True):
        own = flows.filter(pl.col("request") == row["request"])
        assert own.height == row["flows"]
        assert own["start_s"].n_unique() == own["dst"].n_unique() == 1
        assert own["dst"][0] == row["client"]
        assert own["size_bytes"].sum() == row["size_bytes"]
        if own["finish_s"].null_count() == 0:
            assert row["completion_s"] == pytest.approx(own["completion_s"].max())
        else:
            assert row["completion_s"] is None


def test_every_request_has_a_unique_number_and_other_flows_have_none(result: sparelane.Result) -> None:
    requests = result.requests
    assert requests["request"].to_list() == list(range(requests.height))
    assert requests["start_s"].is_sorted()
    assert set(requests["client"].cast(pl.String)) == {"h1", "h2", "h5"}
    assert requests["flows"].sum() == result.flows.height - 1
    assert result.flows["request"].null_count() == 1


def test_fan_outs_have_their_shares(result: sparelane.Result) -> None:
    fixed = result.requests.filter(pl.col("client").cast(pl.String) != "h5")
    assert set(fixed["flows"]) == {1, 2, 8}
    # Two clients at a fifth of 1 Gb/s each, for 0.4 s with 50 kB per flow: 400 flows of 147 requests are expected.
    assert 250 < fixed["flows"].sum() < 550
    assert 0.35 < (fixed["flows"] == 1).mean() < 0.65  # type: ignore[operator]


def test_an_unfinished_flow_leaves_its_request_unfinished() -> None:
    flows = pl.DataFrame(
        {
            "request": [0, 0, None, 1],
            "scheme": ["a", "a", "a", "b"],
            "dst": ["h1", "h1", "h2", "h2"],
            "size_bytes": [5, 7, 9, 2],
            "start_s": [1.0, 1.0, 1.5, 2.0],
            "finish_s": [1.5, None, 3.0, 2.25],
        }
    )
    table = request_table(flows)
    assert table.rows() == [(0, "a", "h1", 2, 12, 7, 1.0, None, None), (1, "b", "h2", 1, 2, 2, 2.0, 2.25, 0.25)]


def test_a_run_without_requests_has_none() -> None:
    plain = TWO_CLIENTS[: TWO_CLIENTS.index("[[workload]]")] + '[[workload]]\nkind = "bulk"\nsize = "1kB"\n'
    assert sparelane.run(plain).requests.is_empty()
