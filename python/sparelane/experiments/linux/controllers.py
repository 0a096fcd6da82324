"""Each controller of the kernel beside ours: `python -m sparelane.experiments.linux.controllers FOLDER`.

Runs both sides of each path, and writes as it goes: flows (runs.csv), windows and queues of one path (series.csv),
and from these the page and the figure. What the folder already has is not run again, so that the work can be done in
parts.
"""

from __future__ import annotations

import sys
from pathlib import Path as Folder

import polars as pl

from sparelane import api
from sparelane.experiments.linux import measured, page
from sparelane.experiments.linux.paths import PATHS, SEEDS, Path, scenario
from sparelane.linux import running
from sparelane.result import Result

SIDES = ("ours", "linux")
# The path whose windows and queues are kept.
SHOWN = PATHS[1]


def main(folder: Folder) -> None:
    """Runs what is missing in the folder, then writes its page."""
    folder.mkdir(parents=True, exist_ok=True)
    runs, series = folder / "runs.csv", folder / "series.csv"
    found = pl.read_csv(runs, schema=measured.SCHEMA) if runs.exists() else pl.DataFrame(schema=measured.SCHEMA)
    for seed in range(1, SEEDS + 1):
        for path in PATHS:
            for side in SIDES:
                done = (pl.col("path") == path.name, pl.col("seed") == seed, pl.col("side") == side)
                if found.filter(*done).height:
                    continue
                result = _run(path, seed, side)
                found = pl.concat([found, measured.rows(path, seed, side, result)])
                if path is SHOWN and seed == 1:
                    kept = [pl.read_csv(series)] if series.exists() else []
                    pl.concat([*kept, measured.series(path, side, result)]).write_csv(series)
                found.write_csv(runs)
                print(f"{path.name}, seed {seed}: {side}", flush=True)
    page.write(folder, found)


def _run(path: Path, seed: int, side: str) -> Result:
    if side == "ours":
        return api.run(scenario(path, seed, on_linux=False), seed=seed)
    return running.run(scenario(path, seed, on_linux=True), seed=seed).result


if __name__ == "__main__":
    main(Folder(sys.argv[1] if len(sys.argv) > 1 else "out/linux/controllers"))
