"""Run one script of `windows.py` in either simulator."""

import json
from pathlib import Path

from controllers_run import SEGMENT_BYTES, ns3_command, ns3_segment_bytes, ours_text
from windows_scripts import Script

DROP = """
[[drop]]
from = "west"
to = "east"
segments = {segments}
"""

# The window at each sample, in segments.
Windows = list[float]


def ours(script: Script, folder: Path) -> Windows:
    """Run sparelane. The workload's files are written into `folder`."""
    import polars

    import sparelane

    script.write(folder)
    text = ours_text(script, folder, "flows = [0]")
    if script.drops:
        text += DROP.format(segments=list(script.drops))
    series = sparelane.run(text, seed=1).series
    windows = series.filter((polars.col("quantity") == "cwnd_bytes") & (polars.col("time_s") > 0)).sort("time_s")
    return [value / SEGMENT_BYTES for value in windows["value"].to_list()]


def ns3_windows_command(script: Script, program: Path, folder: Path, extra: dict[str, str] | None = None) -> list[str]:
    """Return the command that runs ns-3; `extra` replaces or adds attributes."""
    watch = {"windows-every": str(script.interval_ns)}
    if script.drops:
        watch["drop"] = ",".join(map(str, script.drops))
    return ns3_command(script, program, folder, watch | (extra or {}))


def ns3_windows(script: Script, text: str) -> Windows:
    """Parse the windows in the output of `ns3_controllers`."""
    return [int(window) / ns3_segment_bytes(script.peer) for window in json.loads(text)["windows"]]
