"""`sparelane check`: what a scenario will ask for, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sparelane import terminal
from sparelane.commands import given
from sparelane.commands.options import jobs_option, scenario_argument, seeds_option, settings_option
from sparelane.commands.plugin_option import plugin_option, tell
from sparelane.plugins.watch import Limits, watched

if TYPE_CHECKING:
    from sparelane.forecast import Forecast
    from sparelane.sweeps.plan import Plan


@click.command("check")
@scenario_argument("file")
@settings_option
@seeds_option("Seeds of each setting, for a sweep.")
@jobs_option("Worker processes that a sweep would have.")
@plugin_option
def command(file: str, settings: tuple[str, ...], seeds: int | None, jobs: int) -> None:
    """Say whether a scenario can be run, and how many flows, how much time and memory to expect.

    FILE is a scenario or a sweep, a ready-made scenario's name, or - for standard input. The beginning is tried, for a
    second at the most (of a sweep, of its first and its last setting), and the rest is reckoned from it.

    Warnings name keys that have no effect and, as far as the trial shows them, doubts about the results.

    Exits with 2 where it cannot be run.
    """
    from sparelane.sweeps.plan import Plan

    found = given.read(file)
    plan = Plan(found.text, found.file, found.folder, seeds=seeds, settings=settings, needs_variation=False)
    if not plan.is_varied and len(plan.seeds) == 1:
        forecast = _forecasts(found, plan, [0])[0]
        _show(forecast, "")
        _warn([forecast])
        return
    with watched(Limits(), tell):
        plan.check()
    ends = sorted({0, len(plan.settings) - 1})
    forecasts = _forecasts(found, plan, ends)
    for place, one in zip(ends, forecasts, strict=True):
        setting = plan.settings[place]
        where = ", ".join(text for text in (plan.words(setting), setting.scheme) if text)
        _show(one, f"{where}: " if where else "")
    mean_s = sum(one.seconds for one in forecasts) / len(forecasts)
    runs = len(plan.runs)
    shown = terminal.duration(mean_s * runs / min(jobs, runs))
    print_line(f"{runs} runs, {len(plan.settings)} settings: about {shown} with {jobs} processes")
    _warn(forecasts)


def _forecasts(found: given.Given, plan: Plan, places: Sequence[int]) -> list[Forecast]:
    from sparelane._native import ScenarioError
    from sparelane.forecast import forecast

    try:
        with watched(Limits(), tell):
            return [
                forecast(found.scenario, plan.overrides(plan.settings[place]), seed=plan.seeds[0]) for place in places
            ]
    except ScenarioError as error:
        raise ScenarioError(plan.told(str(error)) if plan.is_varied else str(error)) from error


def _warn(forecasts: Sequence[Forecast]) -> None:
    """Prints each warning of the trials once."""
    terminal.warn(dict.fromkeys(text for one in forecasts for text in one.warnings))


def _show(one: Forecast, where: str) -> None:
    from sparelane.units import quantity

    tried = "" if one.tried >= 1 else f" (by the first {100 * one.tried:.2g} %)"
    room = quantity(one.memory_bytes, "B")
    about = "" if one.tried >= 1 else "about "
    print_line(f"{where}{about}{one.flows:,} flows, {about}{terminal.duration(one.seconds)}, {about}{room}{tried}")


def print_line(text: str) -> None:
    """A line on standard output."""
    terminal.output().print(text, soft_wrap=True, markup=False)
