"""Tests that mistyped names in a controller's class are errors that suggest the right name."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from typing import Any

import numpy as np
import pytest

import sparelane as sl
from sparelane.plugins.registry import REGISTRY

SCENARIO = """
duration = "1s"
[topology]
kind = "dumbbell"
pairs = 1
bottleneck_rate = "10Mbps"
[scheme.own]
controller = "NAME"
[workload]
kind = "bulk"
flows = 1
size = "100kB"
"""

NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def _nothing_stays_registered() -> Any:
    before, made = {kind: dict(registered) for kind, registered in REGISTRY.kinds.items()}, REGISTRY.made
    yield
    REGISTRY.kinds, REGISTRY.made = before, made


def law(text: str) -> sl.Result:
    """Registers the class `Law` of a text like a notebook cell, and runs it."""
    number = next(NUMBERS)
    file, text = f"<cell {number}>", textwrap.dedent(text)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"sl": sl, "np": np, "__name__": f"cell_{number}"}
    exec(compile(text, file, "exec"), names)
    sl.controller(f"law-{number}")(names["Law"])
    return sl.run(SCENARIO.replace("NAME", f"law-{number}"))


def class_with(
    on_ack: str = "pass", *, init: str = "pass", body: str = "", on_congestion: str = "pass", more: str = ""
) -> str:
    return "\n".join(
        [
            "class Law(sl.Controller):",
            f"    {body}",
            "    def __init__(self):",
            f"        {init}",
            "    def on_ack(self, ack):",
            f"        {on_ack}",
            "    def on_congestion(self, event):",
            f"        {on_congestion}",
            f"    {more}",
        ]
    )


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            {"on_ack": "self.cwnd_byte = 3"},
            'cwnd_byte is not an attribute.*did you mean "cwnd_bytes".*line 6, in on_ack',
        ),
        ({"init": "self.cwnd_byte = 3"}, 'cwnd_byte has no effect.*did you mean "cwnd_bytes".*line 4, in __init__'),
        ({"init": "self.Cwnd_Bytes = 3"}, 'did you mean "cwnd_bytes"'),
        ({"init": "self.cwndbytes = 3"}, 'did you mean "cwnd_bytes"'),
        ({"init": "self.pacing_bp = 3e6"}, 'pacing_bp has no effect.*did you mean "pacing_bps"'),
        ({"init": "self.cwnd = 10", "on_ack": "self.cwnd += 1"}, 'cwnd has no effect.*did you mean "cwnd_bytes"'),
        ({"init": "self.pacing_rate = 1e6"}, 'pacing_rate has no effect.*did you mean "pacing_bps"'),
        ({"init": "self.ssthresh = 1", "on_ack": "self.ssthres = 2"}, 'ssthres is not an.*did you mean "ssthresh"'),
        ({"on_ack": "self.zebra = 1"}, "zebra is not an attribute.*allowed: one that __init__ assigns.* zebra: float"),
        ({"on_ack": "setattr(self, 'cwnd_byte', 3)"}, 'cwnd_byte is not an attribute.*did you mean "cwnd_bytes"'),
        ({"on_ack": "self.cwnd_byte += 3"}, "no attribute 'cwnd_byte'; did you mean \"cwnd_bytes\".*line 6, in on_ack"),
        ({"on_ack": "self.cwnd_bytes += ack.acked"}, "no attribute 'acked'; did you mean \"acked_bytes\""),
        ({"body": 'traced = ("ssthres",)', "init": "self.ssthresh = 1"}, 'traced names ssthres.*mean "ssthresh"'),
    ],
)
def test_a_mistyped_attribute_ends_the_run_and_names_the_right_one(parts: dict[str, str], expected: str) -> None:
    with pytest.raises(sl.PluginError, match=expected):
        law(class_with(**parts))


@pytest.mark.parametrize(
    "parts",
    [
        {"init": "self.count = 0; self.max_cwnd_bytes = 0; self.cwnd_bytes_2 = 1", "on_ack": "self.count += 1"},
        {"body": "last_s: float", "on_ack": "self.last_s = ack.now_s"},
        {"body": "last_s = 0.0", "on_ack": "self.last_s = ack.now_s"},
        {"body": "cwnd_byte: float", "on_ack": "self.cwnd_byte = 3"},
        {"init": "self.cwnd = 9", "on_ack": "self.cwnd += 1; self.cwnd_bytes = self.cwnd * self.mss_bytes"},
        {"init": "self.cwnd = 9", "more": "def limits(self): return self.cwnd * self.mss_bytes, None"},
        {"body": '__slots__ = ("x",)', "on_ack": "self.x = 3"},
        {"on_ack": "self.on_round()", "more": "def on_round(self): pass"},
        {"body": 'needs = {"delivery_rate"}'},
        {"on_ack": "self.cwnd_bytes = np.float32(20000)"},
        {"on_ack": "ack.rtt_s; self.pacing_bps = None"},
        {"body": "limit = sl.param(5, 'segments')"},
    ],
)
def test_declared_names_are_allowed(parts: dict[str, str]) -> None:
    assert law(class_with(**parts)).totals["finished_flows"] == 1


def test_an_attribute_assigned_in_init_is_declared_for_all_objects() -> None:
    parts = {"init": "setattr(self, 'a' if type(self).made % 2 else 'b', 0); type(self).made += 1", "body": "made = 0"}
    text = class_with(on_ack="self.a = self.b = 1", **parts)
    number = next(NUMBERS)
    names: dict[str, Any] = {"sl": sl}
    exec(text, names)
    sl.controller(f"law-{number}")(names["Law"])
    two = SCENARIO.replace("NAME", f"law-{number}").replace("flows = 1", "flows = 2")
    assert sl.run(two).totals["finished_flows"] == 2


@pytest.mark.parametrize(
    ("parts", "error", "expected"),
    [
        ({"more": "def on_akc(self, ack): pass"}, ValueError, 'nothing calls the method on_akc.*did you mean "on_ack"'),
        ({"more": "def on_loss(self, event): pass"}, ValueError, "nothing calls the method on_loss; allowed: on_ack"),
        ({"more": "def limit(self): return 1, None"}, ValueError, 'nothing calls the method limit.*mean "limits"'),
        ({"more": "def limits(self, x): return 1, None"}, TypeError, "cannot be called as limits.self.*argument: 'x'"),
        ({"more": "async def limits(self): pass"}, TypeError, "limits is a coroutine or a generator"),
        ({"body": "cwnd_bytes = 3"}, ValueError, "hides the attribute cwnd_bytes.*allowed: to set it in __init__"),
        ({"body": "seed = 3"}, ValueError, "hides the attribute seed of sparelane.Controller; allowed: another name"),
        ({"body": 'mss_bytes = sl.param(3, "x")'}, ValueError, "hides the attribute mss_bytes"),
        ({"body": 'needs = "delivery_rate"'}, ValueError, "needs is 'delivery_rate'; allowed: a tuple of names"),
        ({"body": 'need = ("delivery_rate",)'}, ValueError, 'nothing reads need in the class; did you mean "needs"'),
        ({"body": 'traced = "x"'}, ValueError, "traced is 'x'; allowed: a tuple of names"),
        ({"body": "traced = (1,)"}, ValueError, r"traced is \(1,\); allowed: a tuple of names"),
    ],
)
def test_a_name_without_effect_is_refused_at_registration(
    parts: dict[str, str], error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected):
        law(class_with(**parts))


@pytest.mark.parametrize(
    ("on_ack", "expected"),
    [
        ("def on_ack(self): pass", r"on_ack\(self\) cannot be called as on_ack\(self, ack\)"),
        ("def on_ack(ack): pass", r"on_ack\(ack\) cannot be called as on_ack\(self, ack\)"),
        ("def on_ack(self, ack, more): pass", "missing a required argument: 'more'"),
        ("async def on_ack(self, ack): pass", "on_ack is a coroutine"),
        ("def on_ack(self, ack): yield", "on_ack is a coroutine or a generator"),
        ("on_ack = 3", r"on_ack is 3; allowed: a method on_ack\(self, ack\)"),
        ("def __init__(self, x): pass", "parameters are declared with sparelane.param"),
    ],
)
def test_a_method_with_an_incompatible_signature_is_refused(on_ack: str, expected: str) -> None:
    first = "" if "on_ack" in on_ack else "    def on_ack(self, ack): pass\n"
    with pytest.raises(TypeError, match=expected):
        law(f"class Law(sl.Controller):\n{first}    {on_ack}\n    def on_congestion(self, event): pass\n")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("-1", "cwnd_bytes is -1; allowed: bytes from 0"),
        ("float('nan')", "cwnd_bytes is NaN; allowed: bytes from 0"),
        ("float('inf')", "cwnd_bytes is inf; allowed: bytes from 0"),
        ("'3'", r"cwnd_bytes is '3' \(str\); allowed: a number of bytes"),
        ("None", r"cwnd_bytes is None \(NoneType\)"),
        ("True", r"cwnd_bytes is True \(bool\)"),
        ("np.array([1, 2])", r"cwnd_bytes is array\(\[1, 2\]\) \(ndarray\)"),
        ("3j", r"cwnd_bytes is 3j \(complex\)"),
    ],
)
def test_a_window_of_another_type_or_outside_its_bounds_is_reported_with_the_line(value: str, expected: str) -> None:
    with pytest.raises(sl.PluginError, match=rf"{expected}.*line 6, in on_ack"):
        law(class_with(f"self.cwnd_bytes = {value}"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("'1Mbps'", r"pacing_bps is '1Mbps' \(str\); allowed: bits per second, or None"),
        ("0", "pacing_bps is 0; allowed: bits per second from 1000"),
        ("True", r"pacing_bps is True \(bool\)"),
    ],
)
def test_a_pace_of_another_type_or_outside_its_bounds_is_reported_with_the_line(value: str, expected: str) -> None:
    with pytest.raises(sl.PluginError, match=rf"{expected}.*line 4, in __init__"):
        law(class_with(init=f"self.pacing_bps = {value}"))


def test_a_traced_attribute_that_is_none_is_null_in_the_series() -> None:
    text = class_with("self.level = ack.rtt_s", body='traced = ("level",)', init="self.level = None")
    number = next(NUMBERS)
    names: dict[str, Any] = {"sl": sl}
    exec(text, names)
    sl.controller(f"law-{number}")(names["Law"])
    scenario = SCENARIO.replace("NAME", f"law-{number}") + '[sample]\ninterval = "5ms"\nflows = [0]\n'
    sampled = sl.run(scenario).series
    levels = sampled.filter(sampled["quantity"] == "level")["value"]
    assert levels[0] is None
    assert levels.drop_nulls().len() > 0
    names["Law"].on_ack = lambda self, ack: setattr(self, "level", "high")
    with pytest.raises(sl.PluginError, match=r"traced attribute level is 'high' \(str\); allowed: a number or None"):
        sl.run(scenario)


@pytest.mark.parametrize("decorator", ["controller", "workload", "sizes"])
def test_a_decorator_without_its_name_is_refused(decorator: str) -> None:
    def decorated() -> None:
        pass

    with pytest.raises(TypeError, match=rf'@sparelane\.{decorator} takes a name, as in @sparelane\.{decorator}\("my-'):
        getattr(sl, decorator)(decorated)
