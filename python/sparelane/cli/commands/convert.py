"""`sparelane convert`: writes files of other tools as a scenario, and scenarios as files of other tools."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from sparelane import _native
from sparelane._native import ScenarioError
from sparelane.cli.commands.options import settings_option
from sparelane.common import folders
from sparelane.common.folders import OutputError
from sparelane.terminal import console

# Maximum number of flows of a file, as in a run.
MAX_FLOWS = 40_000_000
# Maximum size of a file, as for a file that a scenario names.
MAX_FILE_BYTES = 1 << 30
# Longer than any list of flows, and allowed as the duration of a run.
WHOLE_LIST = "1000000s"
# Seconds that the last flow of a list gets.
LAST_FLOW_S = 1

# A link that follows a trace, in the network of `WITHOUT`.
LINK = """
[[link]]
between = ["west", "east"]
trace = {path}
trace_from = "west"                # the direction that follows it; the other one keeps its rate
"""

# The table of a network or of flows that no file gives, by its name in scenarios.
WITHOUT = {
    "topology": 'kind = "dumbbell"\npairs = 4',
    "workload": 'kind = "bulk"                      # replace it by the flows of your question\npairs = "permutation"\n'
    'size = "1MB"',
}

SCENARIO = """\
# Converted by `sparelane convert` from {origin}.
duration = "{duration}s"{routing}

[topology]
{topology}

[queue]
limit = "100packets"

[scheme.tcp]
controller = "cubic"

[workload]
{workload}
{link}"""


@dataclass(frozen=True, slots=True)
class Input:
    """A file to convert.

    Attributes:
        path: the file.
        purpose: what a scenario names such a file for: "scenario", "topology", "flows", "sizes" or "trace".
        format: the name of its format.
        hosts: the number of hosts that a list of flows needs, if its hosts have numbers by position.
    """

    path: Path
    purpose: str
    format: str
    hosts: int | None

    @property
    def is_fabric(self) -> bool:
        """True for a network of a datacentre, in which flows spread over paths of equal cost."""
        return self.purpose == "topology" and ("HPCC" in self.format or "htsim" in self.format)


@click.command("convert")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "output",
    "-o",
    "--output",
    metavar="OUT",
    type=click.Path(path_type=Path),
    help="The scenario, or with --to the folder.",
)
@click.option(
    "to",
    "--to",
    type=click.Choice(["sparelane", "hpcc"]),
    default="sparelane",
    show_default=True,
    help="Write a scenario, or topology.txt and flow.txt of HPCC's simulator.",
)
@settings_option
def command(files: tuple[Path, ...], output: Path | None, to: str, settings: tuple[str, ...]) -> None:
    """Convert files of other tools to a scenario, or a scenario to files of another tool.

    FILE is a network, a list of flows, a distribution of sizes or a trace, in any format that scenarios can name. A
    network can be given together with flows or sizes. The command writes the scenario OUT, and next to it the network
    as .topo and the flows as .flows. A list of flows without a network gets a star with the hosts that it needs.

    With --to hpcc, FILE can also be a scenario. The command writes its network and the flows that start by its end
    into the folder OUT.

    The page "File formats" of the documentation lists all formats. Existing files are not replaced.
    """
    inputs = _identified(files)
    if to == "hpcc":
        _write_hpcc(inputs, output or Path(), settings)
    else:
        _write_scenario(inputs, output or Path(files[0].stem).with_suffix(".toml"), settings)


def _identified(files: Sequence[Path]) -> dict[str, Input]:
    """The files by their purposes.

    Raises:
        ScenarioError: a file cannot be read, its format is not known, or two have the same purpose.
    """
    inputs: dict[str, Input] = {}
    for path in files:
        hosts = _native.capture_hosts(str(path))
        capture = None if hosts is None else ("flows", "a packet capture", hosts)
        found = capture or _native.identified(_text(path), path.suffix.removeprefix(".").lower())
        if found is None:
            raise ScenarioError(
                f"{path}: unknown kind of file; allowed: a network, a list of flows, a distribution of sizes, a trace, "
                "or with --to hpcc a scenario"
            )
        one = Input(path, *found)
        if one.purpose in inputs:
            raise ScenarioError(
                f"{path}: this is {one.format}, but {inputs[one.purpose].path} is given for the same purpose; allowed: "
                "one file of each purpose"
            )
        inputs[one.purpose] = one
    if "scenario" in inputs and len(inputs) > 1:
        raise ScenarioError(f"{inputs['scenario'].path}: a scenario is complete; allowed: no other file")
    return inputs


def _text(path: Path) -> str:
    """The text of a file, up to the size that scenarios can name."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read ({(error.strerror or str(error)).lower()})") from error
    if len(content) > MAX_FILE_BYTES:
        raise ScenarioError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB; allowed: up to that")
    return _native.decoded(content, str(path))


def _tables(inputs: Mapping[str, Input]) -> dict[str, str]:
    """The tables `topology`, `workload` and `link` of a scenario that names the files themselves."""
    tables = {**WITHOUT, "link": ""}
    if "trace" in inputs:
        trace = inputs["trace"]
        if len(inputs) > 1:
            raise ScenarioError(f"{trace.path}: a link of a dumbbell follows the trace; allowed: no other file")
        tables["link"] = LINK.format(path=_quoted(trace.path))
    flows, network, sizes = (inputs.get(purpose) for purpose in ("flows", "topology", "sizes"))
    if network is not None:
        tables["topology"] = f'kind = "file"\npath = {_quoted(network.path)}'
    elif flows is not None:
        if flows.hosts is None:
            raise ScenarioError(
                f"{flows.path}: its hosts are those of a network; allowed: the file of the network, too"
            )
        tables["topology"] = f'kind = "star"\nhosts = {max(2, flows.hosts)}'
    if flows is not None:
        tables["workload"] = f'kind = "flows"\npath = {_quoted(flows.path)}'
    elif sizes is not None:
        tables["workload"] = (
            'kind = "poisson"\nload = 0.5\ndestinations = "any"\n'
            f'sizes = {{ kind = "cdf", path = {_quoted(sizes.path)} }}'
        )
    if flows is not None and sizes is not None:
        raise ScenarioError(f"{sizes.path}: the flows of {flows.path} have sizes; allowed: one of the two files")
    return tables


def _quoted(path: Path) -> str:
    """The absolute path as a string of TOML."""
    text = str(path.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _filled(inputs: Mapping[str, Input], tables: Mapping[str, str], duration: str) -> str:
    """The text of a scenario with these tables."""
    is_fabric = any(one.is_fabric for one in inputs.values())
    return SCENARIO.format(
        origin=" and ".join(f"{one.path.name} ({one.format})" for one in inputs.values()),
        duration=duration,
        routing='\nrouting = "ecmp"                  # each flow takes one of the paths of equal cost'
        if is_fabric
        else "",
        **tables,
    )


def _prepared(text: str, name: str, folder: Path, settings: Sequence[str]) -> tuple[_native.Prepared, list[str]]:
    """The scenario, and the warnings about its files."""
    arguments = (text, name, str(folder), list(settings))
    size = _native.size(*arguments)
    return _native.prepare(*arguments), list(size["warnings"])


def _write_scenario(inputs: dict[str, Input], output: Path, settings: Sequence[str]) -> None:
    if "scenario" in inputs:
        raise ScenarioError(f"{inputs['scenario'].path}: this is a scenario already; allowed with --to hpcc")
    tables = _tables(inputs)
    text = _filled(inputs, tables, WHOLE_LIST.removesuffix("s") if "flows" in inputs else "5")
    prepared, warnings = _prepared(text, str(output), Path.cwd(), settings)
    files: dict[Path, str] = {}
    if "topology" in inputs:
        path = output.with_suffix(".topo")
        files[path] = prepared.network_file(False)
        tables["topology"] = f'kind = "file"\npath = "{path.name}"'
    duration = 5
    if "flows" in inputs:
        path = output.with_suffix(".flows")
        files[path] = prepared.flows_file(False, MAX_FLOWS)
        tables["workload"] = f'kind = "flows"\npath = "{path.name}"'
        last = files[path].rstrip().rpartition("\n")[2].split()
        duration = math.ceil(float(last[0]) / 1e9 if last else 0) + LAST_FLOW_S
    elif "sizes" in inputs:
        path = output.with_suffix(".sizes")
        files[path] = _text(inputs["sizes"].path)
        tables["workload"] = tables["workload"].replace(_quoted(inputs["sizes"].path), f'"{path.name}"')
    elif "trace" in inputs:
        path = output.with_suffix(".trace")
        files[path] = _text(inputs["trace"].path)
        tables["link"] = LINK.format(path=f'"{path.name}"')
    files[output] = _filled(inputs, tables, str(duration))
    _write(files)
    console.warn(dict.fromkeys(warnings))
    names = ", ".join(str(path) for path in reversed(files))
    console.saved(f"{names}: `sparelane run {output}` runs it", f"the scenario is saved in {output}")


def _write_hpcc(inputs: dict[str, Input], output: Path, settings: Sequence[str]) -> None:
    scenario = inputs.get("scenario")
    if scenario is not None:
        text, name, folder = _text(scenario.path), str(scenario.path), scenario.path.resolve().parent
    else:
        text, name, folder = _filled(inputs, _tables(inputs), WHOLE_LIST.removesuffix("s")), "convert", Path.cwd()
    prepared, warnings = _prepared(text, name, folder, settings)
    files = {output / "topology.txt": prepared.network_file(True)}
    if scenario is not None or "flows" in inputs:
        files[output / "flow.txt"] = prepared.flows_file(True, MAX_FLOWS)
    folders.ready_folder(output)
    _write(files)
    console.warn(dict.fromkeys(warnings))
    names = ", ".join(map(str, files))
    console.saved(names, f"the files are saved in {output}")


def _write(files: Mapping[Path, str]) -> None:
    """Writes all files, or none if one exists already."""
    for path in files:
        if path.exists():
            raise OutputError(f'"{path}" exists already: use another name')
    for path, text in files.items():
        folders.ready_file(path)
        path.write_text(text, encoding="utf-8")
