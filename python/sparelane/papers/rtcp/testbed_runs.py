"""Figs. 4 to 7 of the RTCP paper as runs on Linux and in the simulator, and the rows of what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

from sparelane.papers.engine.base import Effort, Simulation
from sparelane.papers.engine.rows import Key, Metric
from sparelane.papers.rtcp.clients import FCT, GOODPUT, RCT, asks, prices

SCENARIO = "rtcp-linux"
Side = Literal["simulator", "linux"]
SIDES: tuple[Side, ...] = ("simulator", "linux")
# What runs go on for beyond the requests' time, so that what was asked for can arrive, in lengths of that.
LONG_RUN = 6
# Hosts that acknowledge each segment at once: ours always do.
EACH = ("transport.delayed_ack=false",)
# The switch marks for DCTCP alone, since others would ask for marks as well.
ASKS: Mapping[str, tuple[str, ...]] = {"DCTCP": ("queue.mark_at=20packets",)}

# What is varied: hosts of Linux acknowledge each segment, too; and the servers, which are all alike, are named in
# another order, so that of two packets that come at once another one is first.
EACH_ON_BOTH = "Linux acknowledges each segment"
SERVERS = ("left0", "left1", "left2", "left3")
OTHER_ORDERS = tuple(permutations(SERVERS))[1:]
LEAST, LARGEST = (f"the {end} over all orders of the servers" for end in ("least", "largest"))


@dataclass(frozen=True, slots=True)
class Setting:
    """What a figure shows: what is asked for, and how.

    Attributes:
        name: of the rows.
        sizes: of flows, as the paper calls them.
        load: of the client's link.
        alpha: RTCP's.
        schemes: those of the figure that Linux has.
        overrides: `key=value` each.
    """

    name: str
    sizes: str
    load: float
    alpha: float
    schemes: tuple[str, ...] = ("Cubic", "DCTCP", "BBR", "RTCP")
    overrides: tuple[str, ...] = ()

    @property
    def times(self) -> Metric:
        """What is timed: flows, or where a request asks for several, requests, which end with the last of theirs."""
        return RCT if self.overrides == FAN_OUT else FCT


ONE_SERVER = ('workload.servers=["left0"]',)
FAN_OUT = ("workload.fan_out=[{ flows = 1, share = 0.5 }, { flows = 2, share = 0.3 }, { flows = 8, share = 0.2 }]",)
FIG_4 = Setting("Fig. 4, web search, load 0.11", "web search", 0.11, 500, ("Cubic", "DCTCP", "RTCP"), ONE_SERVER)
FIG_5 = Setting("Figs. 5 and 6, web search, load 0.8", "web search", 0.8, 800)
FIG_5_LESS = Setting("Figs. 5 and 6, web search, load 0.6", "web search", 0.6, 800)
FIG_6 = Setting("Figs. 5 and 6, data mining, load 0.8", "data mining", 0.8, 15)
FIG_7 = Setting("Fig. 7, incast, load 0.8", "web search", 0.8, 1000, overrides=FAN_OUT)
SETTINGS = (FIG_4, FIG_5, FIG_5_LESS, FIG_6, FIG_7)
QUICK_SETTINGS = (FIG_4,)
# The runs with numbers that differ by more than 10 %, and are varied.
VARIED: Mapping[Setting, tuple[str, ...]] = {
    FIG_5: ("RTCP",),
    FIG_5_LESS: ("BBR", "RTCP"),
    FIG_7: ("Cubic", "BBR", "RTCP"),
}


@dataclass(frozen=True, slots=True)
class Run:
    """A scheme in a setting."""

    setting: Setting
    scheme: str

    def simulation(self, seed: int, side: Side, effort: Effort, *varied: str) -> Simulation:
        """One run under a seed; both sides send the flows that the simulator draws with it."""
        setting = self.setting
        return Simulation(
            scenario=SCENARIO,
            settings=(
                *asks(setting.sizes, setting.load, self.scheme, effort.stop_s, LONG_RUN),
                *prices(self.scheme, setting.alpha),
                *ASKS.get(self.scheme, ()),
                *setting.overrides,
                *(EACH if side == "simulator" else ()),
                *varied,
            ),
            seed=seed,
            on=side,
            label=f"{setting.name}, {self.scheme}, seed {seed}, {side}{''.join(f', {one}' for one in varied)}",
            cost=10.0 * setting.load * effort.stop_s if side == "linux" else 0.03 * setting.load * effort.stop_s,
        )

    def in_other_orders(self, seed: int, effort: Effort) -> list[Simulation]:
        """The same in the simulator, with the servers in each other order."""
        named = [", ".join(f'"{server}"' for server in order) for order in OTHER_ORDERS]
        return [self.simulation(seed, "simulator", effort, f"workload.servers=[{servers}]") for servers in named]

    def key(self, metric: Metric, average: str = "", traffic: str = "", variant: str = "") -> Key:
        """The row of one quantity."""
        return Key(self.setting.name, metric, self.scheme, average, traffic, variant)

    def percentile(self, traffic: str, share: int) -> Key:
        """The row of a percentile of the times of a class of traffic."""
        return self.key(self.setting.times, f"{share}th percentile", traffic)

    @property
    def goodput(self) -> Key:
        """The row of the goodput."""
        return self.key(GOODPUT.metric)


def runs(effort: Effort) -> list[Run]:
    """Every scheme in every setting."""
    settings = QUICK_SETTINGS if effort.name == "quick" else SETTINGS
    return [Run(setting, scheme) for setting in settings for scheme in setting.schemes]


def is_varied(run: Run, effort: Effort) -> bool:
    """Whether the run is repeated with one thing changed."""
    return effort.name == "full" and run.scheme in VARIED.get(run.setting, ())
