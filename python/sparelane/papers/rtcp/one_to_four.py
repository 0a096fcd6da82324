"""RTCP, section V-A2, Figs. 5 and 6: one client fetches from four servers, at three loads of two workloads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key
from sparelane.papers.rtcp import clients
from sparelane.papers.rtcp.clients import GOODPUT, HIGH_VOLUME, URGENT, Ask, Claim, Run, Setting, Statistic
from sparelane.reports import plots

SCHEMES = ("Cubic", "DCTCP", "BBR", "RTCP")
LOADS = (0.6, 0.7, 0.8)
ALPHA = {"web search": 800.0, "data mining": 15.0}
STATISTICS = (URGENT, HIGH_VOLUME, GOODPUT)

BASE = {
    (sizes, load): Setting(f"{sizes}, load {load:g}", sizes, load, alpha)
    for sizes, alpha in ALPHA.items()
    for load in LOADS
}
BUSIEST = BASE["web search", 0.8]

# What explains single rows, for the schemes that they are about.
HEAVIEST = BASE["data mining", 0.8]
EXPLAINING = (
    Run("Cubic", BUSIEST.varied("first timeouts of 200 ms", "transport.syn_timeout=200ms")),
    Run("Cubic", BUSIEST.varied("eight times the free memory for a queue", "switch.share=8")),
    Run("RTCP", HEAVIEST.varied("x_max of the line rate", "scheme.rtcp.x_max=1")),
    Run("RTCP", HEAVIEST.varied("x_max of 8 line rates", "scheme.rtcp.x_max=8")),
)

RUNS = (
    *(Run(scheme, setting) for setting in BASE.values() for scheme in SCHEMES),
    *clients.open_settings(BUSIEST, SCHEMES),
    *EXPLAINING,
)


def _of(ask: Ask, scheme: str, sizes: str, load: float, statistic: Statistic) -> float:
    return ask(Run(scheme, BASE[sizes, load]), statistic)


def _others(ask: Ask, scheme: str, sizes: str, load: float, statistic: Statistic) -> list[float]:
    return [_of(ask, other, sizes, load, statistic) for other in SCHEMES if other != scheme]


def _growth(ask: Ask, scheme: str, statistic: Statistic) -> float:
    """What load 0.8 makes of the value at 0.6, under web search."""
    return _of(ask, scheme, "web search", 0.8, statistic) / _of(ask, scheme, "web search", 0.6, statistic)


def _growths(ask: Ask, scheme: str, statistic: Statistic) -> list[float]:
    return [_growth(ask, other, statistic) for other in SCHEMES if other != scheme]


def _least(scheme: str, statistic: Statistic, setting: tuple[str, float]) -> Claim:
    """A scheme has the least of something."""
    return Claim(
        BASE[setting].name,
        f"{statistic.words}: {scheme}'s, of the least other's",
        lambda ask: _of(ask, scheme, *setting, statistic) / min(_others(ask, scheme, *setting, statistic)),
    )


def _goodput(metric: str, of: Sequence[str], to: str, load: float) -> Claim:
    """The most goodput of some is below that of another under data mining."""
    return Claim(
        BASE["data mining", load].name,
        metric,
        lambda ask: (
            max(_of(ask, scheme, "data mining", load, GOODPUT) for scheme in of)
            / _of(ask, to, "data mining", load, GOODPUT)
        ),
    )


def _claims() -> Iterable[Claim]:
    for setting in BASE:
        yield _least("RTCP", URGENT, setting)
    for load in LOADS:
        yield _least("Cubic", HIGH_VOLUME, ("web search", load))
        yield _least("DCTCP", HIGH_VOLUME, ("data mining", load))
        yield _goodput("goodput: the most of the others, of BBR's", ("Cubic", "DCTCP", "RTCP"), "BBR", load)
        yield _goodput("goodput: Cubic's, of DCTCP's", ("Cubic",), "DCTCP", load)
        yield _goodput("goodput: DCTCP's, of RTCP's", ("DCTCP",), "RTCP", load)
    yield Claim(
        "web search, load 0.8 over 0.6",
        "what is left of the goodput: Cubic's, of the least other's",
        lambda ask: _growth(ask, "Cubic", GOODPUT) / min(_growths(ask, "Cubic", GOODPUT)),
    )
    yield Claim(
        "web search, load 0.8 over 0.6",
        "what is left of the goodput: the most of the others, of RTCP's",
        lambda ask: max(_growths(ask, "RTCP", GOODPUT)) / _growth(ask, "RTCP", GOODPUT),
    )
    yield Claim(
        "web search, load 0.8 over 0.6",
        "growth of the high-volume 99th FCT: the most of the others, of BBR's",
        lambda ask: max(_growths(ask, "BBR", HIGH_VOLUME)) / _growth(ask, "BBR", HIGH_VOLUME),
    )
    yield Claim(
        "data mining, load 0.8 over 0.6",
        "urgent 99th FCT of Cubic: at 0.8, of that at 0.6",
        lambda ask: _of(ask, "Cubic", "data mining", 0.8, URGENT) / _of(ask, "Cubic", "data mining", 0.6, URGENT),
    )


CLAIMS = tuple(_claims())


NOTES = (
    "Cubic's urgent flows take about 1 s where the switch's queue is full and their first packet is lost: the "
    'timeout of a handshake is 1 s, and with 200 ms (rows "first timeouts") they take about a third. The paper\'s '
    "generator keeps connections open, which have a timeout of 200 ms.",
    "Cubic's high-volume flows are the fastest in the paper's web search and not here. It hangs on the receive "
    "window: with 256 KiB Cubic has no timeouts, and its high-volume flows are the fastest here too, by less than "
    'the interval (rows "receive windows").',
    "Under data mining the largest flows are alone on the link for seconds, and all schemes give them the same time.",
    "RTCP's urgent flows under data mining: with alpha = 15 a window halves only where the path is late by H / "
    '(alpha delta), up to 12.8 ms, so that x_max decides what waits (rows "x_max of the line rate").',
    "RTCP's goodput under web search is below that of the others, where the paper has them comparable; no bound of "
    "the window, upper or lower, lifts it there. BBR's urgent flows wait in the queue that "
    "new flows make in STARTUP; that the paper's reused connections are past it is likely, and was not checked.",
)


def _reasons() -> Iterable[tuple[Key, str]]:
    for load in LOADS:
        yield _least("RTCP", URGENT, ("data mining", load)).key, X_MAX if load == 0.8 else f"{NO_ROW}: {X_MAX}"
        yield _least("Cubic", HIGH_VOLUME, ("web search", load)).key, WINDOW if load == 0.8 else f"{NO_ROW}: {WINDOW}"
        yield (
            _least("DCTCP", HIGH_VOLUME, ("data mining", load)).key,
            "the largest flows are alone on the link for seconds, and all schemes give them the same time, within the "
            "interval",
        )


NO_ROW = "not explained at this load; at load 0.8"
X_MAX = (
    "x_max: with alpha = 15 a window halves only where the path is late by H / (alpha delta), up to 12.8 ms, so that "
    "x_max decides what waits; with x_max of the line rate RTCP's is the least (row)"
)
WINDOW = (
    "the receive window: with 256 KiB Cubic has no timeouts, and its high-volume flows are the fastest, by less than "
    "the interval (rows)"
)


def _keys(sizes: str, load: float, statistic: Statistic, schemes: Sequence[str] = SCHEMES) -> list[Key]:
    return [statistic.key(Run(scheme, BASE[sizes, load])) for scheme in schemes]


def plan(effort: Effort) -> Sequence[Simulation]:
    """Four schemes at three loads of two workloads, and what is varied."""
    return clients.plan(RUNS, effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Times by class, goodput, and the text's statements."""
    return clients.evaluation(RUNS, STATISTICS, CLAIMS, effort, outcomes, notes=NOTES)


def draw(evaluation: Evaluation) -> Figure:
    """Three panels for each workload: urgent and high-volume flows, and goodput."""
    drawing, panels = plots.figure(3, width_inches=plots.PAGE_INCHES, rows=2)
    for at, axes in enumerate(panels):
        sizes, statistic = tuple(ALPHA)[at // 3], STATISTICS[at % 3]
        settings = {f"{load:g}": BASE[sizes, load] for load in LOADS}
        clients.bars(axes, evaluation, SCHEMES, settings, statistic)
        axes.set_xlabel(f"load, {sizes}")
        axes.set_ylabel(statistic.label)
    plots.legend_above(panels[1], 4)
    return drawing


METRICS = named()


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)
