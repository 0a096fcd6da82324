"""RAPID, Table III and Fig. 10: throughput under random loss at 10 Gb/s."""

from __future__ import annotations

from sparelane.experiments.base import Effort, Experiment
from sparelane.experiments.rapid import loss_table, testbed, transfers
from sparelane.experiments.rapid.loss_table import Cell, LossTable
from sparelane.experiments.rapid.printed import LOSS_RATES, TABLE_III

# The queue of a Linux interface, which ends slow start where nothing else does.
INTERFACES = ("transport.receive_window=unlimited", "nic.limit=1000packets", "nic.full=drop")

# Why some rows differ: the noise of hosts, where delays are a signal and queues are empty; windows; a constant.
WINDOWS = ("transport.receive_window=39MB",)
TWICE = ("scheme.hybla.reference_rtt=15ms", 'scheme.hybla.rounding="none"')
VARIED = (
    Cell("illinois", 1e-4, "hosts without noise", (testbed.QUIET_HOSTS,)),
    Cell("illinois", 1e-3, "hosts without noise", (testbed.QUIET_HOSTS,)),
    Cell("newreno", 0.0, "windows of 39 MB", WINDOWS),
    Cell("newreno", 1e-8, "windows of 39 MB", WINDOWS),
    Cell("westwood", 1e-8, "windows of 39 MB", (*WINDOWS, "nic.full=wait")),
    Cell("hybla", 1e-6, "reference of 15 ms, not rounded", TWICE),
    Cell("hybla", 1e-5, "reference of 15 ms, not rounded", TWICE),
    Cell("fast", 1e-4, "alpha = 900 packets", ("scheme.fast.alpha=900.0",)),
    Cell("fast", 1e-3, "alpha = 900 packets", ("scheme.fast.alpha=900.0",)),
)
RARE = (
    "a loss is expected every 12 minutes at 1e-8, and every 72 s at 1e-7: how a run starts counts more, and what its "
    "window may be; see the rows with windows of 39 MB"
)
HYBLA = (
    "the paper's row fits a Hybla with a reference round trip of some 15 ms, not rounded (see the varied rows); Linux "
    "2.6.32 has 25 ms, and rounds its growth to New Reno's at such windows, as the paper's row at 40 Gb/s has it"
)
DELAYS = (
    "where losses keep queues empty, the largest delay that a scheme sees is the noise of its hosts, and all delays "
    "seem long: without noise see the varied row"
)
PORT = f"{transfers.FAST_PORT}: see the row with 900"
BANDWIDTH = (
    "Westwood+ goes back to the bandwidth that it had, in one burst of half a window: what it has depends on how much "
    "of that the interface takes (see the varied row)"
)
REASONS = {
    **loss_table.reasons(RARE, ("newreno", "lp", "veno", "vegas"), (0.0, 1e-8, 1e-7)),
    **loss_table.reasons(HYBLA, ("hybla",), LOSS_RATES[2:]),
    **loss_table.reasons(DELAYS, ("illinois", "vegas"), (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)),
    **loss_table.reasons(PORT, ("fast",), LOSS_RATES[2:]),
    **loss_table.reasons(BANDWIDTH, ("westwood",), LOSS_RATES[:6]),
}

TABLE = LossTable(TABLE_III, settings=INTERFACES, rare_times=2.0, varied=VARIED)

EXPERIMENT = Experiment(
    id="rapid/table3-loss10g",
    title="Throughput under random loss, 10 Gb/s",
    source="RAPID, section V-B, Fig. 10 and Table III",
    method="One transfer over 10 Gb/s and 30 ms in the testbed, under random losses of 1e-8 to 1e-2, with each "
    "protocol of Linux 2.6.32.",
    assumptions=(
        *testbed.ASSUMPTIONS,
        *loss_table.ASSUMPTIONS,
        "Runs of 60 s, and of 120 s where losses are rare (up to 1e-6) or absent, since windows take a minute to "
        "settle between them. At 1e-8 a loss is expected every 720 s at full rate: those runs mostly have none.",
        "Interfaces queue 1000 packets, as Linux has it, and drop what exceeds them; receive windows never bind. So "
        "slow start ends by a loss where nothing else ends it.",
        "RAPID's start-up and its answer to losses and timeouts are not in the paper: they are ours, and this table "
        "alone was used to choose them (loss_cut, new_per_ack).",
    ),
    full=Effort("full", seeds=3, stop_s=60.0),
    quick=Effort("quick", seeds=1, stop_s=6.0),
    plan=TABLE.plan,
    evaluate=TABLE.evaluate,
    draw=loss_table.draw,
    reasons=REASONS,
)
