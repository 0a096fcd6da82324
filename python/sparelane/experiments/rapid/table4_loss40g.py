"""RAPID, Table IV and Fig. 10: throughput under random loss at 40 Gb/s, where hosts reach 20."""

from __future__ import annotations

from sparelane.experiments.base import Effort, Experiment
from sparelane.experiments.rapid import loss_table, testbed, transfers
from sparelane.experiments.rapid.loss_table import Cell, LossTable
from sparelane.experiments.rapid.printed import LOSS_RATES, TABLE_IV

# What the processors of the hosts spend on each packet that they send: 20.6 Gb/s, the most that the table has.
SEND_COST = "3.49us"

# Fewer acknowledgments, by which windows grow: what a receiver that merges segments sends.
FEWER = ("transport.delayed_ack={every = 4}",)
VARIED = tuple(
    Cell(scheme, loss, "an acknowledgment for four", FEWER)
    for scheme in ("newreno", "hybla", "highspeed", "scalable")
    for loss in (1e-5, 1e-4)
)

TABLE = LossTable(
    TABLE_IV,
    settings=(
        "topology.bottleneck_rate=40Gbps",
        "link.0.rate=40Gbps",
        "link.1.rate=40Gbps",
        f"host_at.0.send_cost={SEND_COST}",
        "transport.receive_window=79MB",
        "scheme.rapid.transport.receive_window=79MB",
    ),
    varied=VARIED,
)

COPIED = "the printed rows of FAST and Westwood have the same last six numbers: one is a mistake of the paper's"
SHORT = (
    "in 48 s at 20 Gb/s a loss is expected in one run of seven at 1e-8, and once or twice in each at 1e-7; the paper's "
    "numbers differ from those without loss by more"
)
GROWTH = (
    "windows grow by acknowledgments: the paper's numbers lie between ours with one for two segments and with one for "
    "four (see the varied rows), and below its own at 10 Gb/s; what its receivers merge at 40 Gb/s it does not say"
)
GROWING = ("newreno", "hybla", "highspeed", "scalable", "lp", "veno")

EXPERIMENT = Experiment(
    id="rapid/table4-loss40g",
    title="Throughput under random loss, 40 Gb/s",
    source="RAPID, section V-B, Fig. 10 and Table IV",
    method="One transfer over a direct fibre of 40 Gb/s, with 30 ms by delayed acknowledgments; the processors of the "
    "hosts allow 20 Gb/s.",
    assumptions=(
        *testbed.ASSUMPTIONS,
        *loss_table.ASSUMPTIONS,
        f"A host's processor takes {SEND_COST} for each packet that it sends, which makes 20.6 Gb/s, the table's "
        "highest number. Receive windows are of 20.6 Gb/s x 30 ms and 1.5 MB. Runs of 48 s; RAPID's are longer "
        "by a minute. Since processors and not "
        "interfaces limit the hosts, no queue of netem fills, as it does in Table III.",
    ),
    full=Effort("full", seeds=3, stop_s=48.0),
    quick=Effort("quick", seeds=1, stop_s=4.0),
    plan=TABLE.plan,
    evaluate=TABLE.evaluate,
    draw=loss_table.draw,
    fitted=testbed.FITTED,
    reasons={
        **loss_table.reasons(SHORT, tuple(transfers.SCHEMES), LOSS_RATES[1:3]),
        **loss_table.reasons(GROWTH, GROWING, LOSS_RATES[3:6]),
        **loss_table.reasons(loss_table.DELAYS, ("illinois",), LOSS_RATES[5:]),
        **loss_table.reasons(COPIED, ("fast", "westwood"), LOSS_RATES[2:]),
    },
)
