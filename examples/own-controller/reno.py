"""NewReno in Python, with the rules of the built-in controller. Both give runs with the same digest."""

import sparelane as sl


@sl.controller("py-newreno", source="RFC 5681, RFC 6582")
class NewReno(sl.Controller):
    """Adds one segment per round trip and halves the window at a loss."""

    initial_window = sl.param(10, "congestion window of a new connection", min=1, max=1_000_000, unit="segments")

    # Attributes recorded in time series in addition to the window.
    traced = ("ssthresh_bytes",)

    def __init__(self) -> None:
        self.cwnd_bytes = self.initial_window * self.mss_bytes
        self.ssthresh_bytes = float(2**64 - 1)
        self.remainder = 0.0
        self.before_cut = (self.cwnd_bytes, self.ssthresh_bytes)

    def on_ack(self, ack: sl.Ack) -> None:
        if ack.in_recovery or not ack.cwnd_limited:
            return
        # Data that SACK reported earlier does not count again.
        acked = min(ack.acked_bytes, ack.delivered_bytes)
        if acked == 0:
            return
        cwnd = self.cwnd_bytes
        if cwnd < self.ssthresh_bytes:
            self.cwnd_bytes = min(cwnd + min(acked, self.mss_bytes), self.ssthresh_bytes)
            return
        # One segment per window of acknowledged bytes; the remainder of the division is carried over.
        bytes_more, self.remainder = divmod(self.mss_bytes * acked + self.remainder, cwnd)
        self.cwnd_bytes = cwnd + bytes_more

    def on_congestion(self, event: sl.Congestion) -> None:
        if event.kind == "spurious":
            self.cwnd_bytes = max(self.cwnd_bytes, self.before_cut[0])
            self.ssthresh_bytes = max(self.ssthresh_bytes, self.before_cut[1])
        elif event.kind == "lost-syn" or event.is_repeated:
            self.cwnd_bytes = self.mss_bytes
        else:
            self.before_cut = (self.cwnd_bytes, self.ssthresh_bytes)
            self.ssthresh_bytes = max(event.flight_bytes // 2, 2 * self.mss_bytes)
            self.cwnd_bytes = self.mss_bytes if event.kind == "timeout" else min(self.ssthresh_bytes, self.cwnd_bytes)
