"""`sparelane new`: writes a commented scenario to start from."""

from __future__ import annotations

from pathlib import Path

import click

from sparelane.common import folders
from sparelane.common.folders import OutputError
from sparelane.terminal import console

SUFFIX = ".toml"

SCENARIO = """\
# {question}
title = "RC3 and TCP on a dumbbell"      # the comment above is your question: reports begin with it
duration = "5s"                    # when the run ends, finished or not
seed = 1                           # seed of every random draw: equal seeds, equal traffic

# `sparelane list` shows all topologies, queues, controllers and workloads, and `sparelane list NAME` the keys of one.
[topology]
kind = "dumbbell"                  # hosts left0, left1, ... - west - east - right0, right1, ...
pairs = 4
access_rate = "1Gbps"              # access faster than the bottleneck, so that hosts do not synchronise
access_delay = "1ms"
bottleneck_rate = "100Mbps"
bottleneck_delay = "8ms"           # round-trip time: 20 ms

[queue]
kind = "priority"                  # RC3 sends its tail at low priority; "fifo" has none
limit = "1bdp"                     # bytes ("90KB"), packets ("100packets") or bandwidth-delay products

# Controllers under names of your choice; their parameters come below.
[scheme.tcp]
controller = "newreno"

[scheme.rc3]
controller = "rc3"
inner = "newreno"                  # the controller at normal priority

[workload]
kind = "poisson"                   # flows that arrive at random
{scheme}{load}
load_on = "busiest-core"           # of which link the load is a share
sizes = {{ kind = "rc3" }}           # or {{ kind = "fixed", size = "100kB" }}, "web-search", "data-mining", ...
{sample}"""

OF_RUN = {
    "question": "How fast does RC3 complete flows on a bottleneck at half load?",
    "scheme": 'scheme = "rc3"                     # to compare, run again with --set workload.scheme=tcp\n',
    "load": "load = 0.5",
    "sample": """
# Time series for `sparelane plot`: windows and round-trip times of flows, queue lengths, and utilisation of links.
[sample]
interval = "10ms"
flows = [0, 1]
queues = [["west", "east"]]
links = [["west", "east"]]
""",
}
OF_SWEEP = {
    "question": "How much faster than TCP does RC3 complete flows, as the load of the bottleneck grows?",
    "scheme": '# Without a scheme, each one above runs in turn with the same flows. Or: scheme = ["tcp", "rc3"]\n',
    "load": "load = { from = 0.2, to = 0.6, step = 0.2 }   # or a list: [0.2, 0.4, 0.6]",
    "sample": "",
}


@click.command("new")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "is_sweep", "--sweep", is_flag=True, help="Write a sweep: a scenario in which some keys have several values."
)
def command(file: Path, is_sweep: bool) -> None:
    """Write a commented scenario to FILE, ready to run."""
    target = file if file.suffix else file.with_suffix(SUFFIX)
    if target.exists():
        raise OutputError(f'"{target}" exists already: use another name')
    folders.ready_file(target)
    target.write_text(SCENARIO.format(**(OF_SWEEP if is_sweep else OF_RUN)), encoding="utf-8")
    verb = "sweep" if is_sweep else "run"
    more = " --seeds 5" if is_sweep else ""
    console.saved(f"{target}: `sparelane {verb} {target}{more}` runs it", f"the scenario is saved in {target}")
