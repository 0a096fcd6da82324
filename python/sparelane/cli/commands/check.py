"""`sparelane check`: validates a scenario and estimates its flows, time and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sparelane.cli.commands import scenario_input
from sparelane.cli.commands.options import jobs_option, scenario_argument, seeds_option, settings_option
from sparelane.cli.commands.plugin_option import plugin_option, report_slow_call
from sparelane.cli.commands.scenario_input import ScenarioInput
from sparelane.plugins.watch import Limits, watched
from sparelane.terminal import console

if TYPE_CHECKING:
    from sparelane.simulation.forecast import Forecast
    from sparelane.sweeps.plan import Plan


@click.command("check")
@scenario_argument("file")
@settings_option
@seeds_option("Seeds of each setting, for a sweep.")
@jobs_option("Worker processes of the sweep, for its estimated time.")
@plugin_option
def command(file: str, settings: tuple[str, ...], seeds: int | None, jobs: int) -> None:
    """Validate a scenario, and estimate its number of flows, time and memory.

    FILE is a scenario or a sweep, the name of a ready-made scenario, or - for standard input. The command simulates the
    start of the run for one second and extrapolates. For a sweep, it tries the first and the last setting. Numbers
    after "about" are estimates. A scenario that needs more than 500 MB for its network and open flows is not tried; its
    flows and memory are estimated from its size.

    Warnings name keys without effect, and doubts about the results that show in the trial.

    Exits with 2 if the scenario cannot be run.
    """
    from sparelane.simulation.warnings import counted
    from sparelane.sweeps.plan import Plan

    source = scenario_input.read(file)
    plan = Plan(source.text, source.file, source.folder, seeds=seeds, settings=settings, needs_variation=False)
    if not plan.is_varied and len(plan.seeds) == 1:
        forecast = _forecasts(source, plan, [0])[0]
        print_line(_line(forecast))
        console.warn(dict.fromkeys(forecast.warnings))
        return
    ends = sorted({0, len(plan.settings) - 1})
    forecasts = _forecasts(source, plan, ends)
    names = [
        ", ".join(text for text in (plan.describe(setting), setting.scheme) if text)
        for setting in (plan.settings[place] for place in ends)
    ]
    for name, one in zip(names, forecasts, strict=True):
        print_line(": ".join(text for text in (name, _line(one)) if text))
    # `plan.runs` would compute a fingerprint of each run, which takes a minute for a million runs.
    runs = len(plan.settings) * len(plan.seeds)
    times = [one.seconds for one in forecasts if one.seconds is not None]
    if len(times) == len(forecasts):
        about = f"about {console.duration(sum(times) / len(times) * runs / min(jobs, runs))} with {jobs} processes"
    else:
        about = "the time is unknown"
    print_line(f"{runs:,} runs, {len(plan.settings):,} settings: {about}")
    schemes = {setting.scheme for setting in plan.settings if setting.scheme}
    for warning in counted([one.warnings for one in forecasts], used_elsewhere=schemes):
        text = warning["text"]
        concerned = [name for name, one in zip(names, forecasts, strict=True) if text in one.warnings]
        # A warning of one of the two tried settings names it.
        console.warn([f"{concerned[0]}: {text}" if len(concerned) == 1 < len(names) else text])


def _forecasts(source: ScenarioInput, plan: Plan, places: Sequence[int]) -> list[Forecast]:
    from sparelane._native import ScenarioError
    from sparelane.simulation.forecast import forecast

    try:
        with watched(Limits(), report_slow_call):
            return [
                forecast(source.scenario, plan.overrides(plan.settings[place]), seed=plan.seeds[0]) for place in places
            ]
    except ScenarioError as error:
        raise ScenarioError(plan.in_file_terms(str(error)) if plan.is_varied else str(error)) from error


def _line(one: Forecast) -> str:
    """A forecast in one line."""
    from sparelane.common.units import quantity

    if one.flows is None or one.memory_bytes is None:
        return f"flows, time and memory are unknown: {one.untried}"
    about = "" if one.tried >= 1 else "about "
    flows = f"{about}{one.flows:,} flows, "
    memory = f"{about}{quantity(one.memory_bytes, 'B')}"
    if one.seconds is None:
        why = f"the time is unknown, as it was not tried: {one.untried}"
        return f"{flows}{memory}, estimated from its size; {why}; `sparelane run --run-limit 60` runs it for a minute"
    tried = "" if one.tried >= 1 else f" (from the first {100 * one.tried:.2g} %)"
    return f"{flows}{about}{console.duration(one.seconds)}, {memory}{tried}"


def print_line(text: str) -> None:
    """Prints a line on standard output."""
    console.output().print(text, soft_wrap=True, markup=False)
