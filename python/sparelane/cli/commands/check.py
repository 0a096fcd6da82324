"""`sparelane check`: what a scenario will ask for, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sparelane.cli.commands import given
from sparelane.cli.commands.options import jobs_option, scenario_argument, seeds_option, settings_option
from sparelane.cli.commands.plugin_option import plugin_option, tell
from sparelane.plugins.watch import Limits, watched
from sparelane.terminal import console as terminal

if TYPE_CHECKING:
    from sparelane.simulation.forecast import Forecast
    from sparelane.sweeps.plan import Plan


@click.command("check")
@scenario_argument("file")
@settings_option
@seeds_option("Seeds of each setting, for a sweep.")
@jobs_option("Worker processes that a sweep would have.")
@plugin_option
def command(file: str, settings: tuple[str, ...], seeds: int | None, jobs: int) -> None:
    """Say whether a scenario can be run, and how many flows, how much time and memory to expect.

    FILE is a scenario or a sweep, a ready-made scenario's name, or - for standard input. The command tries the
    beginning of the run for one second and extrapolates; of a sweep it tries the first and the last setting. Numbers
    after "about" are estimates. A scenario whose network and open flows need more than 500 MB is not tried: its flows
    and its memory are estimated from its size.

    Warnings name keys that have no effect and, as far as the trial shows them, doubts about the results.

    Exits with 2 if the scenario cannot be run.
    """
    from sparelane.simulation.warnings import counted
    from sparelane.sweeps.plan import Plan

    found = given.read(file)
    plan = Plan(found.text, found.file, found.folder, seeds=seeds, settings=settings, needs_variation=False)
    if not plan.is_varied and len(plan.seeds) == 1:
        forecast = _forecasts(found, plan, [0])[0]
        print_line(_words(forecast))
        terminal.warn(dict.fromkeys(forecast.warnings))
        return
    ends = sorted({0, len(plan.settings) - 1})
    forecasts = _forecasts(found, plan, ends)
    for place, one in zip(ends, forecasts, strict=True):
        setting = plan.settings[place]
        where = ", ".join(text for text in (plan.words(setting), setting.scheme) if text)
        print_line(": ".join(text for text in (where, _words(one)) if text))
    # The list of the runs has a fingerprint of each, which takes a minute for a million.
    runs = len(plan.settings) * len(plan.seeds)
    times = [one.seconds for one in forecasts if one.seconds is not None]
    if len(times) == len(forecasts):
        about = f"about {terminal.duration(sum(times) / len(times) * runs / min(jobs, runs))} with {jobs} processes"
    else:
        about = "the time is unknown"
    print_line(f"{runs:,} runs, {len(plan.settings):,} settings: {about}")
    schemes = {setting.scheme for setting in plan.settings if setting.scheme}
    terminal.warn(one["text"] for one in counted([one.warnings for one in forecasts], used_elsewhere=schemes))


def _forecasts(found: given.Given, plan: Plan, places: Sequence[int]) -> list[Forecast]:
    from sparelane._native import ScenarioError
    from sparelane.simulation.forecast import forecast

    try:
        with watched(Limits(), tell):
            return [
                forecast(found.scenario, plan.overrides(plan.settings[place]), seed=plan.seeds[0]) for place in places
            ]
    except ScenarioError as error:
        raise ScenarioError(plan.told(str(error)) if plan.is_varied else str(error)) from error


def _words(one: Forecast) -> str:
    """A forecast in a line."""
    from sparelane.common.units import quantity

    if one.flows is None or one.memory_bytes is None:
        return f"flows, time and memory are unknown: {one.untried}"
    about = "" if one.tried >= 1 else "about "
    told = f"{about}{one.flows:,} flows, "
    room = f"{about}{quantity(one.memory_bytes, 'B')}"
    if one.seconds is None:
        why = f"the time is unknown, as it was not tried: {one.untried}"
        return f"{told}{room}, estimated from its size; {why}; `sparelane run --run-limit 60` runs it for a minute"
    tried = "" if one.tried >= 1 else f" (by the first {100 * one.tried:.2g} %)"
    return f"{told}{about}{terminal.duration(one.seconds)}, {room}{tried}"


def print_line(text: str) -> None:
    """A line on standard output."""
    terminal.output().print(text, soft_wrap=True, markup=False)
