"""Plans a sweep: reads the scenario, finds the keys that vary, and lists the settings and runs."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sparelane import _native
from sparelane._native import ScenarioError
from sparelane.plugins import REGISTRY, fingerprint
from sparelane.results import manifest
from sparelane.results.rows import SCHEMA, AxisValue
from sparelane.scenario.settings import toml_value
from sparelane.simulation import simulate
from sparelane.sweeps import axes, keys
from sparelane.sweeps.axes import Axis
from sparelane.sweeps.values import ValuesError, label, plain, several

# The largest number of runs of a sweep.
MAX_RUNS = 1_000_000
# The version of the measurements of runs. It increases when stored outcomes would differ from new ones.
MEASURES = 4
# Keys of a scenario that do not affect its runs.
DESCRIPTIVE = ("title", "source")
OVERRIDE_ORIGIN = "--set "


@dataclass(frozen=True, slots=True)
class Setting:
    """One combination of values.

    Attributes:
        places: for each axis, the index of its value.
        applies: for each axis, true if it matters in this setting. Keys of a scheme without traffic do not.
        scheme: the label of the compared scheme; empty if the scheme does not vary.
        compared: the names in the scenario of the schemes that `scheme` stands for.
    """

    places: tuple[int, ...]
    applies: tuple[bool, ...]
    scheme: str
    compared: frozenset[str]


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation of a sweep.

    Attributes:
        name: a hash of the scenario, its files, the seed and the version of the simulator.
        setting: the index of its setting in the plan.
        seed: the seed of every random draw.
    """

    name: str
    setting: int
    seed: int


class Plan:
    """The settings and runs of a sweep file.

    Attributes:
        name: the name of the file without its suffix.
        file: the name of the file in messages.
        folder: the folder that relative paths in the file start from.
        text: the content of the file.
        title: the title; may be empty.
        axes: the keys that vary.
        seeds: the seeds of each setting.
        fixed: overrides for all runs, each `KEY=VALUE`.
        seed_overrides: overrides of the seed.
        is_varied: true if anything except the seed varies.
        settings: all combinations of values, without those that differ only in keys that do not matter.
    """

    def __init__(
        self,
        text: str,
        file: str,
        folder: Path,
        *,
        seeds: int | None = None,
        settings: Sequence[str] = (),
        needs_variation: bool = True,
    ) -> None:
        self.name, self.file, self.folder, self.text = Path(file).stem, file, folder, text
        # Overrides with several values become axes. An override of the seed sets the first seed.
        self.fixed = [one for one in settings if not one.startswith("seed=")]
        self.seed_overrides = [one for one in settings if one.startswith("seed=")]
        self._scenario = _native.tables(text, file, list(settings))
        self.title = str(self._scenario.get("title", ""))
        self.seeds = self._seeds(seeds)
        # The seed is not an axis: all settings have the same seeds.
        self._scenario.pop("seed", None)
        self.axes = axes.find(self._scenario, file, text)
        clash = next((axis for axis in self.axes if axis.key in SCHEMA), None)
        if clash is not None:
            raise axes.mistake(
                file, text, clash.paths[0], "cannot vary as a whole; allowed: a list in place of a value"
            )
        descriptive = next((axis for axis in self.axes if axis.key in DESCRIPTIVE), None)
        if descriptive is not None:
            raise axes.mistake(file, text, descriptive.paths[0], "does not affect runs; allowed: one text")
        count = math.prod(len(axis.values) for axis in self.axes) * len(self.seeds)
        if count > MAX_RUNS:
            raise ScenarioError(f"{file}: {count} runs; allowed: at most {MAX_RUNS}")
        if count == 1 and needs_variation:
            raise ScenarioError(
                f"{file}: nothing varies; allowed: a list or a range in place of a value, several schemes with a "
                "workload that names none, or --seeds N (`sparelane run` runs a scenario once)"
            )
        self.is_varied = count > len(self.seeds)
        self.settings = list(self._settings())

    def _seeds(self, wanted: int | None) -> tuple[int, ...]:
        given = self._scenario.get("seed", 1)
        try:
            listed = several(given, is_list=False, is_table=False)
        except ValuesError as error:
            raise axes.mistake(self.file, self.text, ("seed",), str(error)) from error
        numbers = [given] if listed is None else listed
        wrong = next((one for one in numbers if type(one) is not int or not 0 <= one <= simulate.MAX_SEED), None)
        if wrong is not None:
            message = f"{label(wrong)} is not a seed; allowed: whole numbers from 0 to {simulate.MAX_SEED}"
            raise axes.mistake(self.file, self.text, ("seed",), message)
        if wanted is None:
            return tuple(numbers)
        return tuple(range(numbers[0], numbers[0] + wanted))

    def _settings(self) -> Iterator[Setting]:
        seen = set()
        # A sweep may have a million settings but few schemes, so facts about schemes are computed once for each.
        of_schemes = [number for number, axis in enumerate(self.axes) if axis.chooses or axis.scheme]
        known: dict[tuple[int, ...], tuple[tuple[bool, ...], str, frozenset[str]]] = {}
        for places in itertools.product(*(range(len(axis.values)) for axis in self.axes)):
            key = tuple([places[number] for number in of_schemes])
            if key not in known:
                used = self._used(places)
                applies = tuple(not axis.scheme or axis.scheme in used for axis in self.axes)
                known[key] = (applies, *self._scheme(_applying(places, applies), applies))
            applies, scheme, compared = known[key]
            if not all(applies):
                # Settings that differ only in keys of unused schemes are the same.
                places = _applying(places, applies)
                if places in seen:
                    continue
                seen.add(places)
            yield Setting(places, applies, scheme, compared)

    def _used(self, places: Sequence[int]) -> set[str]:
        """The schemes with traffic in a setting; all schemes if that is unknown."""
        named = self._scenario.get("scheme")
        schemes = set(named) if isinstance(named, Mapping) else set()
        chosen = {name for axis, place in self._chosen(places) for name in _names(axis, axis.values[place])}
        workload = self._scenario.get("workload")
        tables = workload if isinstance(workload, list) else [workload]
        for table in tables:
            # A file of flows may name any scheme.
            if not isinstance(table, Mapping) or table.get("kind") not in ("poisson", "bulk", "requests", "web-users"):
                return schemes
            scheme, mix = table.get("scheme"), table.get("mix")
            chosen |= {scheme} if isinstance(scheme, str) else set()
            chosen |= set(mix) if isinstance(mix, Mapping) else set()
        return chosen & schemes or schemes

    def _chosen(self, places: Sequence[int]) -> Iterator[tuple[Axis, int]]:
        """The axes that choose schemes of workloads, each with the index of its value."""
        for axis, place in zip(self.axes, places, strict=True):
            if axis.chooses in ("scheme", "mix"):
                yield axis, place

    def _scheme(self, places: Sequence[int], applies: Sequence[bool]) -> tuple[str, frozenset[str]]:
        """The compared scheme of a setting: its label, and the names in the scenario that it stands for."""
        varied = {
            axis.scheme: str(axis.values[place])
            for axis, place, does in zip(self.axes, places, applies, strict=True)
            if axis.chooses == "controller" and does
        }
        parts, compared = [], set(varied)
        for axis, place in self._chosen(places):
            value = axis.values[place]
            compared |= _names(axis, value)
            if axis.names[place]:
                parts.append(axis.names[place])
            elif axis.chooses == "mix" and isinstance(value, Mapping):
                parts.append(", ".join(f"{varied.pop(name, name)} {label(share)}" for name, share in value.items()))
            else:
                parts.append(varied.pop(str(value), label(value)))
        return " + ".join([*parts, *varied.values()]), frozenset(compared)

    @property
    def setting_axes(self) -> list[Axis]:
        """The axes that do not choose a scheme."""
        return [axis for axis in self.axes if not axis.chooses]

    def values(self, setting: Setting) -> dict[str, AxisValue]:
        """The value of each axis in `setting_axes`, by key; `None` if the axis does not matter in this setting."""
        found: dict[str, AxisValue] = {}
        for axis, place, does in zip(self.axes, setting.places, setting.applies, strict=True):
            if not axis.chooses:
                found[axis.key] = axis.column(place) if does else None
        return found

    def describe(self, setting: Setting) -> str:
        """A setting as text: the shortest unique names of its keys, with their values."""
        values = self.values(setting)
        return ", ".join(f"{self.short(key)} = {label(value)}" for key, value in values.items() if value is not None)

    def short(self, key: str) -> str:
        """The shortest suffix of a key that distinguishes it from the other keys."""
        return axes.short_key(key, [axis.key for axis in self.axes])

    def overrides(self, setting: Setting) -> list[str]:
        """The overrides that turn the file into the scenario of a setting."""
        return [
            *self.fixed,
            *(
                f"{axes.dotted(path)}={toml_value(plain(axis.values[place]))}"
                for axis, place in zip(self.axes, setting.places, strict=True)
                for path in axis.paths
            ),
        ]

    def scenario(self, setting: Setting) -> dict[str, Any]:
        """The scenario of a setting, without a seed."""
        content: dict[str, Any] = copy.deepcopy(self._scenario)
        for axis, place in zip(self.axes, setting.places, strict=True):
            for path in axis.paths:
                _place(content, path, axis.values[place])
        return content

    @cached_property
    def runs(self) -> list[Run]:
        """All runs: the settings in order, each with all seeds."""
        parts = [manifest.LAYOUT, MEASURES, _native.__version__, manifest.engine(), *self.fixed]
        if plugins := fingerprint("\n".join((self.text, *self.fixed))):
            parts.append(plugins)
        made_by = json.dumps(parts).encode()
        files: dict[str, str] = {}
        runs = []
        for number, setting in enumerate(self.settings):
            content = self.scenario(setting)
            for key in DESCRIPTIVE:
                content.pop(key, None)
            text = json.dumps(plain(content)).encode()
            named = json.dumps(self._files(content, files)).encode()
            digest = hashlib.blake2b(b"\0".join((made_by, text, named)), digest_size=16)
            for seed in self.seeds:
                of_seed = digest.copy()
                of_seed.update(b"\0%d" % seed)
                runs.append(Run(of_seed.hexdigest(), number, seed))
        return runs

    @cached_property
    def key(self) -> str:
        """A fingerprint of all runs, which is equal for equal plans."""
        return hashlib.blake2b("".join(run.name for run in self.runs).encode(), digest_size=16).hexdigest()

    def _files(self, content: Any, known: dict[str, str]) -> list[str]:
        """Digests of the files in a scenario. Every text that is the path of a file counts."""
        found = []
        for text in _texts(content):
            if text not in known:
                known[text] = _file_digest(self.folder / text)
            found.append(known[text])
        return [digest for digest in found if digest]

    def check(self) -> None:
        """Parses and builds settings until one succeeds or every value was tried once.

        Raises:
            ScenarioError: no setting can be run. The error is that of the first setting.
            PluginError: a plugin fails.
        """
        first: ScenarioError | None = None
        for turn in range(max(len(axis.values) for axis in self.axes) if self.axes else 1):
            places = tuple(turn % len(axis.values) for axis in self.axes)
            setting = Setting(places, (True,) * len(places), "", frozenset())
            try:
                overrides, seed, catalogue = self.overrides(setting), self.seeds[0], REGISTRY.catalogue()
                _native.prepare(self.text, self.file, str(self.folder), overrides, seed, None, catalogue)
                return
            except ScenarioError as error:
                first = first or error
        if first is not None:
            raise ScenarioError(self.in_file_terms(str(first))) from first

    def in_file_terms(self, message: str) -> str:
        """Rewrites a message of the parser about an override, which comes from a value in the sweep file."""
        return message.replace(OVERRIDE_ORIGIN, f"{self.file}: ", 1) if message.startswith(OVERRIDE_ORIGIN) else message


def _applying(places: Sequence[int], applies: Sequence[bool]) -> tuple[int, ...]:
    """The indices of values, with 0 for axes that do not matter."""
    return tuple(place if does else 0 for place, does in zip(places, applies, strict=True))


def _names(axis: Axis, value: Any) -> set[str]:
    return set(value) if axis.chooses == "mix" and isinstance(value, Mapping) else {str(value)}


def _place(content: Any, path: keys.Path, value: Any) -> None:
    for part in path[:-1]:
        content = content[part]
    content[path[-1]] = value


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for item in content.values():
            yield from _texts(item)
    elif isinstance(content, list):
        for item in content:
            yield from _texts(item)


def _file_digest(path: Path) -> str:
    """A fingerprint of a file's content; empty if it is not a readable file."""
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() if path.is_file() else ""
    except (OSError, ValueError):
        return ""
