"""RC3 in the kernel, by flow size: `python -m sparelane.experiments.linux.rc3 FOLDER`.

Single flows as in Figs. 15 and 18 of the paper (Mittal et al., NSDI 2014, section 5.2), with and without RC3, at 1 and
10 Gb/s and 20 ms, around New Reno and CUBIC: on the kernel that `sparelane linux build --rc3` builds, and in the
simulator. Virtual time models no cost of processors, so that offload of segments, which the paper turns on and off,
changes nothing here; packets go one by one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from sparelane import api
from sparelane.experiments import plots
from sparelane.linux import running

# Packets of 1460 bytes, as in the paper.
SIZES = (1, 5, 10, 50, 100, 500, 1000)
RATES_GBPS = (1, 10)
INNER = {"newreno": "New Reno", "cubic": "CUBIC"}
KEYS = ("rate_gbps", "controller", "packets")

SCENARIO = """
duration = "5s"
[topology]
kind = "dumbbell"
pairs = 1
access_delay = "1ms"
bottleneck_delay = "8ms"
access_rate = "{rate}Gbps"
bottleneck_rate = "{rate}Gbps"
[queue]
kind = "priority"
push_out = false
limit = "100000packets"
[transport]
preset = "linux"
mss = "1460B"
header = "40B"
[scheme.tcp]
controller = "{inner}"
[scheme.rc3]
controller = "rc3"
inner = "{inner}"
[workload]
kind = "bulk"
scheme = "{scheme}"
size = "{packets}packets"
"""


def completion_s(side: str, rate: int, inner: str, scheme: str, packets: int) -> float:
    """How long one flow takes, in seconds, on Linux or in the simulator."""
    text = SCENARIO.format(rate=rate, inner=inner, scheme=scheme, packets=packets)
    result = running.run(text).result if side == "linux" else api.run(text)
    return float(result.flows["completion_s"][0])


def measure() -> pl.DataFrame:
    """A row per rate, controller and size, with the completion times of both sides and schemes."""
    rows = []
    for rate in RATES_GBPS:
        for inner in INNER:
            for packets in SIZES:
                row: dict[str, float | str] = dict(zip(KEYS, (rate, inner, packets), strict=True))
                for side in ("linux", "simulated"):
                    for scheme in ("tcp", "rc3"):
                        row[f"{side}_{scheme}_s"] = completion_s(side, rate, inner, scheme, packets)
                rows.append(row)
                print(f"{rate} Gb/s, {inner}, {packets} packets", flush=True)
    return pl.DataFrame(rows).with_columns(
        (1 - pl.col(f"{side}_rc3_s") / pl.col(f"{side}_tcp_s")).alias(f"{side}_reduction")
        for side in ("linux", "simulated")
    )


def write(folder: Path, rows: pl.DataFrame) -> None:
    """The table, the page and the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    rows.write_csv(folder / "rows.csv")
    lines = [
        "# RC3 in the Linux kernel, by flow size",
        "",
        "Single flows of so many packets of 1460 bytes over 20 ms, without other traffic: completion times with the",
        "handshake, in milliseconds, in Linux 6.12 with the patches of `linux/rc3`, and in the simulator.",
        "",
        "| rate | inside | packets | Linux: TCP | RC3 | reduction | simulated: TCP | RC3 | reduction |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows.iter_rows(named=True):
        cells = [f"{row['rate_gbps']} Gb/s", INNER[row["controller"]], str(row["packets"])]
        for side in ("linux", "simulated"):
            cells += [f"{1e3 * row[f'{side}_{scheme}_s']:.1f}" for scheme in ("tcp", "rc3")]
            cells.append(f"{row[f'{side}_reduction']:.0%}")
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "![Reduction of the completion time by flow size](figure.png)",
        "",
        "As in Fig. 15 of the paper, flows of the first window gain nothing, and those of 100 to 1000 packets most.",
        "The simulator gains more: there the receive window is no limit, while a SYN-ACK of the kernel offers 64 kB,",
        "so that 44 packets at most go in the first round trip, and each acknowledgment opens it a little more.",
        "",
        "To repeat it: `make linux-rc3`.",
    ]
    (folder / "README.md").write_text("\n".join(lines) + "\n")
    with plots.style():
        drawing, panels = plots.figure(len(RATES_GBPS), width_inches=7.0)
        looks = (plots.RC3, plots.FOURTH)
        for axes, rate in zip(panels, RATES_GBPS, strict=True):
            for look, (inner, name) in zip(looks, INNER.items(), strict=True):
                shown = rows.filter(pl.col("rate_gbps") == rate, pl.col("controller") == inner)
                packets = shown["packets"].to_list()
                plots.line(axes, f"{name}, Linux", look, packets, (100 * shown["linux_reduction"]).to_list())
            both = rows.filter(pl.col("rate_gbps") == rate, pl.col("controller") == "newreno")
            simulated = (100 * both["simulated_reduction"]).to_list()
            plots.line(axes, "New Reno, simulated", plots.THIRD, both["packets"].to_list(), simulated)
            axes.set(xscale="log", xlabel="packets of the flow", ylabel="reduction of the completion time (%)")
            axes.set_title(f"{rate} Gb/s, 20 ms")
        panels[0].legend(frameon=False)
        plots.save(drawing, folder)


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "out/linux/rc3"), measure())
