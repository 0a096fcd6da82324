"""Tests of the log of packets in Python."""

import polars as pl

import sparelane

PACED = """
duration = "20ms"

[topology]
kind = "dumbbell"
pairs = 1
access_rate = "10Gbps"
access_delay = "5us"
bottleneck_rate = "10Gbps"
bottleneck_delay = "10us"

[scheme.paced]
controller = "constant"
window = 1000
pace = "1Gbps"

[workload]
kind = "bulk"
scheme = "paced"
size = "1MB"

[[drop]]
from = "west"
to = "east"
flow = 0
segments = [7]

[packets]
count = 50
"""


def test_a_log_is_a_table_with_nulls_for_missing_times() -> None:
    packets = sparelane.run(PACED).packets
    assert packets.schema["is_retransmission"] == pl.Boolean
    first = packets.filter(~pl.col("is_retransmission"))
    assert first["segment"].to_list() == list(range(first.height))
    assert packets.filter("is_retransmission")["segment"].to_list() == [7]
    assert packets["stamped_s"].null_count() == 50
    assert packets.filter(pl.col("arrived_s").is_null())["segment"].to_list() == [7]
    gaps = (packets["departed_s"].diff().drop_nulls() * 1e9).round(3)
    assert gaps.unique().to_list() == [12_000.0]


def test_without_a_log_there_are_no_packets() -> None:
    packets = sparelane.run(PACED, set={"duration": "1ms", "packets.from": "0.9ms"}).packets
    assert 0 < packets.height < 20
    assert sparelane.run(PACED.split("[packets]")[0]).packets.is_empty()
