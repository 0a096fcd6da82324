"""RTCP's testbed on Linux: `python -m sparelane.experiments.linux.rtcp FOLDER`.

Figs. 4 to 7 of the paper (section V-A): a client fetches flows from one server or from four over 1 Gb/s and 200 us. The
flows are those that the simulator's experiments draw; here each of them is a transfer of its own with the same size and
start on the TCP of Linux in virtual time, where RTCP is the source of the BPF program, built in, and in the simulator
beside it. What the folder already has is not run again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from sparelane import api
from sparelane.experiments.linux import rtcp_page
from sparelane.linux import running
from sparelane.result import Result

SIDES = ("ours", "linux")
CLASSES = ("urgent", "high-volume")
URGENT_BELOW_BYTES = 30_000
# Requests come for so long; flows that start in the first tenth do not count.
STOP_S = 2.0
WARM_UP_SHARE = 0.1
LONGEST_S = 12.0
SEEDS = 1


@dataclass(frozen=True, slots=True)
class Setting:
    """What a figure shows: what is asked for, and how.

    Attributes:
        name: of the rows.
        sizes: the kind of the simulator's sizes.
        load: of the client's link.
        alpha: RTCP's.
        schemes: those of the figure that Linux has.
        servers: how many.
        fan_out: flows at once and the share of such requests.
    """

    name: str
    sizes: str
    load: float
    alpha: float
    schemes: tuple[str, ...] = ("cubic", "dctcp", "bbr", "rtcp")
    servers: int = 4
    fan_out: tuple[tuple[int, float], ...] = ((1, 1.0),)


SETTINGS = (
    Setting("Fig. 4, web search, load 0.11", "web-search", 0.11, 500, ("cubic", "dctcp", "rtcp"), servers=1),
    Setting("Figs. 5 and 6, web search, load 0.8", "web-search", 0.8, 800),
    Setting("Fig. 7, incast, load 0.8", "web-search", 0.8, 1000, fan_out=((1, 0.5), (2, 0.3), (8, 0.2))),
    Setting("Figs. 5 and 6, web search, load 0.6", "web-search", 0.6, 800),
    Setting("Figs. 5 and 6, data mining, load 0.8", "data-mining", 0.8, 15),
)
SCHEMES = {
    "cubic": 'controller = "cubic"',
    "dctcp": 'controller = "dctcp"',
    "bbr": 'controller = "bbr"',
    "rtcp": 'controller = "rtcp"\ninterface = "delay"\ndelta = 125\nclassify = "by-size"\nmin_window = 2\n'
    "weights = { urgent = 24000, high-volume = 12000 }\nalpha = ",
}
# The switch marks for DCTCP alone, since others would ask for marks as well.
MARKS = {"dctcp": 'mark_at = "20packets"\n'}
SCHEMA = {
    "setting": pl.String,
    "scheme": pl.String,
    "seed": pl.Int64,
    "side": pl.String,
    "quantity": pl.String,
    "value": pl.Float64,
    "count": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow that a client asks for."""

    server: int
    start_s: float
    size_bytes: int
    request: int


def drawn(setting: Setting, seed: int) -> list[Flow]:
    """The flows that the simulator's experiment draws under this seed, in order of their start."""
    servers = ",".join(f'"h{number + 2}"' for number in range(setting.servers))
    fan_out = ", ".join(f"{{ flows = {flows}, share = {share} }}" for flows, share in setting.fan_out)
    settings = [
        f"workload.sizes.kind={setting.sizes}",
        f"workload.load={setting.load}",
        f"workload.servers=[{servers}]",
        f"workload.fan_out=[{fan_out}]",
        f"workload.end={STOP_S}s",
        f"duration={STOP_S}s",
    ]
    flows = api.run("rtcp-testbed", seed=seed, set=settings).flows.sort("start_s", maintain_order=True)
    return [
        Flow(int(row["src"][1:]) - 2, row["start_s"], row["size_bytes"], row["request"])
        for row in flows.with_columns(pl.col("src").cast(pl.String)).iter_rows(named=True)
    ]


def scenario(setting: Setting, scheme: str, flows: list[Flow]) -> Iterator[str]:
    """These flows as transfers; Linux and the simulator differ in `[transport]`, which the caller adds."""
    yield f'title = "{setting.name}"\nduration = "{LONGEST_S}s"'
    yield '[topology]\nkind = "dumbbell"\npairs = 4\naccess_rate = "1Gbps"\naccess_delay = "10us"'
    yield 'bottleneck_rate = "1Gbps"\nbottleneck_delay = "80us"'
    # Half of the switch's 9 MB: what dynamic thresholds leave to one queue.
    yield f'[queue]\nlimit = "4.5MB"\n{MARKS.get(scheme, "")}'
    yield f"[scheme.{scheme}]\n{SCHEMES[scheme]}{f'{setting.alpha:g}' if scheme == 'rtcp' else ''}"
    for flow in flows:
        yield f'[[workload]]\nkind = "bulk"\nscheme = "{scheme}"\npairs = [["left{flow.server}", "right0"]]'
        yield f'size = "{flow.size_bytes}B"\nstart = "{round(flow.start_s * 1e9)}ns"'


def run(setting: Setting, scheme: str, flows: list[Flow], seed: int, side: str) -> Result:
    """One run of one side."""
    text = "\n".join(scenario(setting, scheme, flows))
    ecn = 'ecn = "dctcp"\n' if scheme == "dctcp" else ""
    both = f'{text}\n[transport]\npreset = "linux"\nmss = "1448B"\nheader = "52B"\n{ecn}'
    if side == "linux":
        return running.run(both, seed=seed).result
    return api.run(f"{both}delayed_ack = false\n", seed=seed)


def rows(setting: Setting, scheme: str, flows: list[Flow], seed: int, side: str, result: Result) -> pl.DataFrame:
    """What the paper's figures show of a run: times in milliseconds, goodput in Mb/s."""
    asked = pl.DataFrame({"size_bytes": [f.size_bytes for f in flows], "request": [f.request for f in flows]})
    found = asked.with_columns(
        result.flows["start_s"],
        (result.flows["completion_s"] * 1e3).alias("ms"),
        (pl.col("size_bytes") < URGENT_BELOW_BYTES).alias("is_urgent"),
    ).filter(pl.col("start_s") >= WARM_UP_SHARE * STOP_S)
    if setting.fan_out[-1][0] > 1:
        requests = found.group_by("request", maintain_order=True).agg(
            pl.col("ms").max(), pl.col("is_urgent").all(), pl.col("ms").is_not_null().all().alias("is_over")
        )
        timed = requests.filter("is_over")
    else:
        timed = found.drop_nulls("ms")
    kept = []
    for name in CLASSES:
        times = timed.filter(pl.col("is_urgent") == (name == "urgent"))["ms"].to_numpy()
        for share in (50, 99):
            kept.append((f"{name} {share}th", float(np.percentile(times, share)) if len(times) else None, len(times)))
    done = found.drop_nulls("ms")
    goodput = (done["size_bytes"] * 8 / done["ms"] / 1e3).to_numpy()
    kept += [
        ("goodput", float(goodput.mean()), done.height),
        ("unfinished", float(found.height - done.height), found.height),
    ]
    return pl.DataFrame([(setting.name, scheme, seed, side, *values) for values in kept], schema=SCHEMA, orient="row")


def main(folder: Path) -> None:
    """Runs what is missing in the folder, then writes its page."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = folder / "runs.csv"
    found = pl.read_csv(runs, schema=SCHEMA) if runs.exists() else pl.DataFrame(schema=SCHEMA)
    for seed in range(1, SEEDS + 1):
        for setting in SETTINGS:
            flows = drawn(setting, seed)
            for scheme in setting.schemes:
                for side in SIDES:
                    if found.filter(setting=setting.name, scheme=scheme, seed=seed, side=side).height:
                        continue
                    result = run(setting, scheme, flows, seed, side)
                    found = pl.concat([found, rows(setting, scheme, flows, seed, side, result)])
                    found.write_csv(runs)
                    print(f"{setting.name}, seed {seed}: {scheme}, {side}", flush=True)
    rtcp_page.write(folder, found, [setting.name for setting in SETTINGS])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/linux/rtcp"))
