"""The keys and values of a scenario that Linux supports. All others are refused by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from sparelane._native import ScenarioError
from sparelane.uml import rtcp
from sparelane.uml.network import CLASSES, MOST_BATCH
from sparelane.uml.parameters import CONTROLLERS, settable

if TYPE_CHECKING:
    from sparelane._native import Description, SchemeDescription

Table = Mapping[str, Any]
# The allowed values of some keys of a table.
Values = Mapping[str, Collection[Any]]

MOST_HOSTS = 400
MOST_ROUTERS = 30
TOP = (
    "title",
    "source",
    "duration",
    "seed",
    "topology",
    "link",
    "drop",
    "change",
    "queue",
    "transport",
    "scheme",
    "workload",
    "sample",
)
TRANSPORT = (
    "preset",
    "ecn",
    "mss",
    "header",
    "delayed_ack",
    "send_batch",
    "receive_batch",
    "receive_batch_timeout",
    "restart_after_idle",
)
TRANSPORT_VALUES: Values = {
    "preset": ("linux",),
    "delayed_ack": (True, False),
    "restart_after_idle": ("linux", "no"),
    "send_batch": range(1, MOST_BATCH + 1),
    "receive_batch": (1, MOST_BATCH),
}


def refusal(scenario: Description, what: str, allowed: str) -> ScenarioError:
    """The error for something that Linux cannot do."""
    return ScenarioError(f"{scenario['file']}: {what}: --on linux cannot do it; allowed: {allowed}")


def tables(scenario: Description, name: str) -> list[tuple[str, Table]]:
    """The tables of a list with their paths. A single table is a list of one."""
    found = scenario["given"].get(name, [])
    return [(f"{name}.{place}", one) for place, one in enumerate([found] if isinstance(found, dict) else found)]


def check(scenario: Description) -> None:
    """Checks all tables except `[queue]`, whose kind may depend on the flows.

    Raises:
        ScenarioError: a key or value is not supported; the message names the first.
    """
    given = scenario["given"]
    check_table(scenario, "", given, TOP)
    check_table(scenario, "topology", given["topology"], kind=("dumbbell", "chain"))
    _check_counts(scenario)
    check_table(scenario, "transport", given.get("transport", {}), TRANSPORT, **TRANSPORT_VALUES)
    for name, scheme in scenario["schemes"].items():
        _check_scheme(scenario, f"scheme.{name}", given["scheme"][name], scheme)
    for path, table in tables(scenario, "workload"):
        # The kernel opens flows at planned times, and its sockets are written at once.
        check_table(scenario, path, table, kind=("bulk", "requests"))
        for key in ("writes", "after"):
            if key in table:
                raise refusal(scenario, f"{path}.{key}", "workloads without it")
    for path, table in tables(scenario, "link"):
        check_table(scenario, path, table, ("select", "between", "loss"), select=("core",))
    for path, table in tables(scenario, "change"):
        keys = ("at", "select", "between", "from", "rate", "delay", "loss", "down")
        check_table(scenario, path, table, keys, select=("core",))


def check_table(
    scenario: Description, path: str, table: Table, keys: Collection[str] | None = None, **values: Collection[Any]
) -> None:
    """Checks that a table has no keys but `keys`, and for the keys of `values` none but these values.

    Raises:
        ScenarioError: it has; the message names the first.
    """
    for key, value in table.items():
        place = f"{path}.{key}" if path else key
        if keys is not None and key not in keys:
            raise refusal(scenario, place, ", ".join(sorted(keys)))
        if key in values and not (isinstance(value, str | int) and value in values[key]):
            raise refusal(scenario, f"{place} = {value!r}", _listed(values[key]))


def _check_counts(scenario: Description) -> None:
    routers, hosts = len(scenario["routers"]), len(scenario["hosts"])
    if not 2 <= routers <= MOST_ROUTERS:
        raise refusal(scenario, f"topology.routers = {routers}", f"2 to {MOST_ROUTERS}")
    if hosts > MOST_HOSTS:
        key = "pairs" if scenario["given"]["topology"]["kind"] == "dumbbell" else "hosts_per_router"
        raise refusal(scenario, f"topology.{key} = {hosts // routers}", f"up to {MOST_HOSTS // routers}")


def _check_scheme(scenario: Description, path: str, table: Table, scheme: SchemeDescription) -> None:
    controller, values = scheme["controller"], scheme["settings"]
    check_table(scenario, path, {"controller": controller}, controller=(*CONTROLLERS, rtcp.NAME, "rc3"))
    if controller == "rc3":
        check_table(scenario, path, table, ("controller", "inner", "levels"))
        if isinstance(table.get("inner"), Mapping):
            check_table(scenario, f"{path}.inner", table["inner"], ("controller",))
        check_table(scenario, path, {"inner": values["inner"]}, inner=CONTROLLERS)
        return
    own = (*rtcp.settable(), "weights", "interface") if controller == rtcp.NAME else settable(controller)
    keys = ("controller", "class", "like", "transport", *own)
    check_table(scenario, path, table, keys, **{"like": ("linux",), "class": range(CLASSES)})
    check_table(scenario, f"{path}.transport", table.get("transport", {}), ("ecn",) if controller == "dctcp" else ())
    if controller == rtcp.NAME:
        check_table(scenario, path, {"interface": values["interface"]}, interface=rtcp.INTERFACES)
        if "weights" in table and values["classify"] != rtcp.BY_SIZE:
            raise refusal(scenario, f"{path}.weights", 'weights with classify = "by-size", or weight')


def _listed(values: Collection[Any]) -> str:
    if isinstance(values, range):
        return f"{values[0]} to {values[-1]}"
    return ", ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
