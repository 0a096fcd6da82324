"""RTCP, section V-A2 and Fig. 4: one client fetches from one server."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation
from sparelane.papers.rtcp import clients
from sparelane.papers.rtcp.clients import GOODPUT, HIGH_VOLUME, URGENT, Ask, Claim, Run, Setting, Statistic
from sparelane.reports import plots

SCHEMES = ("Cubic", "DCTCP", "PCC", "RTCP")
OTHERS = ("Cubic", "DCTCP", "PCC")
STATISTICS = (URGENT, HIGH_VOLUME, GOODPUT)

ONE_SERVER = 'workload.servers=["h2"]'
BASE = Setting("load 0.11", "web search", 0.11, 500, (ONE_SERVER,))
LOADED = Setting("load 0.6", "web search", 0.6, 500, (ONE_SERVER,))

RUNS = (
    *(Run(scheme, setting) for setting in (BASE, LOADED) for scheme in SCHEMES),
    *clients.open_settings(BASE, SCHEMES),
)


def _of(ask: Ask, scheme: str, statistic: Statistic, setting: Setting = BASE) -> float:
    return ask(Run(scheme, setting), statistic)


CLAIMS = (
    Claim(
        "Fig. 4",
        "urgent 99th FCT: RTCP's, of the least other's",
        lambda ask: _of(ask, "RTCP", URGENT) / min(_of(ask, scheme, URGENT) for scheme in OTHERS),
    ),
    Claim(
        "Fig. 4",
        "urgent 99th FCT: Cubic's, of the lesser of DCTCP's and PCC's",
        lambda ask: _of(ask, "Cubic", URGENT) / min(_of(ask, scheme, URGENT) for scheme in ("DCTCP", "PCC")),
    ),
    Claim(
        "Fig. 4",
        "high-volume 99th FCT: PCC's, of the least other's",
        lambda ask: (
            _of(ask, "PCC", HIGH_VOLUME) / min(_of(ask, scheme, HIGH_VOLUME) for scheme in SCHEMES if scheme != "PCC")
        ),
    ),
    Claim(
        "Fig. 4",
        "high-volume 99th FCT: the least, of RTCP's",
        lambda ask: min(_of(ask, scheme, HIGH_VOLUME) for scheme in OTHERS) / _of(ask, "RTCP", HIGH_VOLUME),
    ),
    Claim(
        "section V-A2",
        "goodput: RTCP's, of the mean of the others",
        lambda ask: 3 * _of(ask, "RTCP", GOODPUT) / sum(_of(ask, scheme, GOODPUT) for scheme in OTHERS),
        is_order=False,
    ),
)


NOTES = (
    "Cubic and DCTCP are the same here: nothing is lost or marked, since all queues are in the server, so that both "
    "stay in slow start and the server's interface paces them. On the paper's testbed Cubic is ahead; whether that is "
    "Linux's HyStart, by which its Cubic leaves slow start as delays grow, was not checked.",
    "PCC's and Cubic's high-volume flows take the same time within the interval: both fill the link.",
    "Goodput by the paper's own definition, size over completion time, is three to five times its 110 Mb/s in a "
    "network that is hardly used, for any scheme. RTCP's is lower than Cubic's since the wait at its own "
    "interface is a part of D: where it counts in Q alone, the goodput is level with Cubic's (rows \"the wait at the "
    "own "
    'interface in Q and not in D"). Without a request for windows to shrink (rows "alpha = 0") it is level, too.',
)


_TIE, _PCC, _, _GOODPUT = CLAIMS[1:]
# Around 110 Mb/s, the paper says of all.
AROUND_MBPS = 110.0


def plan(effort: Effort) -> Sequence[Simulation]:
    """Four schemes at two loads, and what is varied."""
    return clients.plan(RUNS, effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Times by class, goodput, and the text's statements."""
    return clients.evaluation(RUNS, STATISTICS, CLAIMS, effort, outcomes, notes=NOTES)


def draw(evaluation: Evaluation) -> Figure:
    """Times of both classes and goodput at the assumed load."""
    drawing, panels = plots.figure(3, width_inches=plots.PAGE_INCHES)
    for axes, statistic in zip(panels, STATISTICS, strict=True):
        clients.bars(axes, evaluation, SCHEMES, {"0.11": BASE, "0.6": LOADED}, statistic)
        axes.set_xlabel("load")
        axes.set_ylabel(statistic.label)
    plots.legend_above(panels[1], 4)
    return drawing


METRICS = named()


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
