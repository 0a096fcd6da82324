"""The slides' "where RC3 is of little help": a small buffer at the bottleneck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Simulation
from sparelane.experiments.claims import at_most, ratio
from sparelane.experiments.rc3 import internet2
from sparelane.experiments.rc3.downlink import DOWNLINK
from sparelane.experiments.rc3.fig9_bdp import SLOW_NEAR
from sparelane.experiments.rc3.internet2 import AVERAGES, Setting

# 100 Mb/s x 40 ms, as the paper rounds it.
PRODUCT_KB = 500

# Sizes of router buffers in delay-bandwidth products.
SMALLER = (0.02, 0.05, 0.1, 0.3)


def _by_size(base: Setting, where: str) -> Mapping[float, Setting]:
    smaller = {
        share: base.varied(f"{share:g} BDP{where}", f"queue.limit={share * PRODUCT_KB:g}KB") for share in SMALLER
    }
    return {**smaller, 1.0: replace(base, name=f"1 BDP{where}")}


# The bottleneck is a router's link to a host, so that the buffer at the bottleneck is a router's; or a host's link to
# its router, where it is the host's own.
SETTINGS = _by_size(DOWNLINK, "")
AT_HOSTS = _by_size(SLOW_NEAR, ", hosts' links the bottleneck")

LOOKS = {"over flows": plots.TCP, "over bytes": plots.RC3}

ASSUMPTIONS = (
    *internet2.ASSUMPTIONS,
    'The slides give no numbers and no setting; the buffer is that "at the bottleneck". So the bottleneck is where the '
    "buffer is a router's, as in rc3/downlink: hosts send at 1 Gb/s and receive at 100 Mb/s, at 30 % load and 40 ms, "
    f"where runs are cheap. Router buffers are shares of the delay-bandwidth product of {PRODUCT_KB} KB, down to six "
    "packets; hosts keep theirs.",
    "Rows \"hosts' links the bottleneck\" have hosts that send at 100 Mb/s, too: there packets wait in the hosts' own "
    "large queues, and routers' buffers matter little.",
    "Of little help is taken as half of the gain with a full product's buffer, or less.",
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """Both schemes with each buffer."""
    return internet2.plan(_settings(effort), effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times and reductions with each buffer."""
    rows = (row for setting in _settings(effort) for row in internet2.completion_rows(setting, {}, effort, outcomes))
    return Evaluation(tuple(rows), internet2.notes(effort))


def _settings(effort: Effort) -> Sequence[Setting]:
    """What is simulated; a full effort also has the hosts' links as the bottleneck."""
    return [*SETTINGS.values(), *(AT_HOSTS.values() if effort.name == "full" else ())]


def draw(evaluation: Evaluation) -> Figure:
    """Reduction against buffer."""
    drawing, [axes] = plots.figure()
    for average in AVERAGES:
        rows = [evaluation.find(f"{setting.name} {average}", "reduction") for setting in SETTINGS.values()]
        plots.points(axes, average, LOOKS[average], list(SETTINGS), rows)
    axes.set_xscale("log")
    axes.set_xticks(list(SETTINGS), [f"{share:g}" for share in SETTINGS], minor=False)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.minorticks_off()
    axes.set_xlabel("router buffer (delay-bandwidth products)")
    axes.set_ylabel("reduction of mean\ncompletion time (%)")
    plots.legend_above(axes, 2)
    return drawing


CLAIMS = (
    Claim(
        "RC3 is of little help where the bottleneck's buffer is small (slides)",
        ratio(("0.02 BDP over flows", "reduction"), ("1 BDP over flows", "reduction")),
        full=at_most(0.5),
        quick=at_most(0.6),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/small-buffers",
    title="RC3's gain by the size of router buffers",
    source='RC3 slides, "Where RC3 is of little help"',
    method='"Small queue buffer size at the bottleneck" is on the list, without numbers.',
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=5.0),
    quick=Effort("quick", seeds=1, stop_s=3.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    claims=CLAIMS,
)
