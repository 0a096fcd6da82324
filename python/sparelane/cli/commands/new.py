"""`sparelane new`: a scenario to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from sparelane.common import folders
from sparelane.common.folders import OutputError
from sparelane.terminal import console as terminal

ENDING = ".toml"

SCENARIO = """\
# {question}
title = "RC3 beside TCP on a dumbbell"   # the comment above is your question: reports begin with it
duration = "5s"                    # when the run ends, finished or not
seed = 1                           # of every random draw: equal seeds, equal traffic

# `sparelane list` names all topologies, queues, controllers and workloads, and `sparelane list NAME` their keys.
[topology]
kind = "dumbbell"                  # hosts left0, left1, ... - west - east - right0, right1, ...
pairs = 4
access_rate = "1Gbps"              # a faster access than the bottleneck, so that hosts are not in step
access_delay = "1ms"
bottleneck_rate = "100Mbps"
bottleneck_delay = "8ms"           # a round trip of 20 ms in all

[queue]
kind = "priority"                  # RC3 sends its tail at low priority; "fifo" has none
limit = "1bdp"                     # bytes ("90KB"), packets ("100packets") or bandwidth-delay products

# Controllers under names of your choice; their parameters come below.
[scheme.tcp]
controller = "newreno"

[scheme.rc3]
controller = "rc3"
inner = "newreno"                  # what sends at normal priority

[workload]
kind = "poisson"                   # flows that arrive at random
{scheme}{load}
load_on = "busiest-core"           # of which link the load is a share
sizes = {{ kind = "rc3" }}           # or {{ kind = "fixed", size = "100kB" }}, "web-search", "data-mining", ...
{sample}"""

OF_RUN = {
    "question": "Does RC3 end flows soon on a bottleneck that is half busy?",
    "scheme": 'scheme = "rc3"                     # run it again with --set workload.scheme=tcp, and compare\n',
    "load": "load = 0.5",
    "sample": """
# Time series, for `sparelane plot`: windows and round trips of flows, queues and use of links.
[sample]
interval = "10ms"
flows = [0, 1]
queues = [["west", "east"]]
links = [["west", "east"]]
""",
}
OF_SWEEP = {
    "question": "How much sooner does RC3 end flows than TCP does, as their bottleneck gets busier?",
    "scheme": '# Without a scheme, each one above is run in turn, with the same flows. Or: scheme = ["tcp", "rc3"]\n',
    "load": "load = { from = 0.2, to = 0.6, step = 0.2 }   # or a list: [0.2, 0.4, 0.6]",
    "sample": "",
}


@click.command("new")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "is_sweep", "--sweep", is_flag=True, help="Write a sweep: a scenario in which some keys have several values."
)
def command(file: Path, is_sweep: bool) -> None:
    """Write a commented scenario into FILE, ready to run."""
    target = file if file.suffix else file.with_suffix(ENDING)
    if target.exists():
        raise OutputError(f'"{target}" is there already: use another name')
    folders.ready_file(target)
    target.write_text(SCENARIO.format(**(OF_SWEEP if is_sweep else OF_RUN)), encoding="utf-8")
    verb = "sweep" if is_sweep else "run"
    more = " --seeds 5" if is_sweep else ""
    terminal.saved(f"{target}: `sparelane {verb} {target}{more}` runs it", f"the scenario is saved in {target}")
