"""Measures one flow on the kernel with segmentation and receive offload, each on and off: NSDI 2014, Fig. 18."""

from __future__ import annotations

from collections.abc import Iterable

from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Metric, Row
from sparelane.papers.rc3 import single_flows
from sparelane.papers.rc3.internet2 import FCT

# The paper's times omit the connection's set-up, which takes a round trip, in seconds.
SET_UP_S = 0.020
BATCH = Metric("packets sent as one, on average", "packets")
HANDED = Metric("packets handed to the receiver's TCP", "packets")
OVERHEAD = Metric("reduction of the overhead of processing packets", "%")
METRICS = named(FCT, HANDED, BATCH, OVERHEAD)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    listed = [cell for flows in single_flows.read(declared) for size in flows.packets for cell in flows.pair(size)]

    def cells(effort: Effort) -> Iterable[Cell]:
        del effort
        return listed

    def evaluate(runs: Runs) -> Evaluation:
        rows = [row for cell in listed for row in _rows(cell, runs)]
        # Virtual time does not measure the overhead.
        return Evaluation((*rows, *(Row(key, None, None) for key in declared.printed)))

    return panels.study(declared, cells, evaluate)


def _rows(cell: Cell, runs: Runs) -> Iterable[Row]:
    """Yields the completion time, and the numbers of packets that hosts send and receive as one."""
    [outcome] = runs.of(cell)
    whole_s: float | None = outcome.flows["completion_s"].item()
    yield Row(cell.key(FCT), None, None if whole_s is None else whole_s - SET_UP_S)
    sender, receiver = outcome.counters["left0"], outcome.counters["right0"]
    # Segments of TCP, with the few that have no data, over packets that leave the host's stack.
    yield Row(cell.key(BATCH), None, sender["Tcp.OutSegs"] / sender["Ip.OutRequests"])
    yield Row(cell.key(HANDED), None, receiver["Ip.InReceives"])
