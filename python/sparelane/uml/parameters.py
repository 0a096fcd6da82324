"""The controllers of the kernel, and the parameters of scenarios that its modules can take."""

from __future__ import annotations

from collections.abc import Callable

# The kernel's name of each controller.
CONTROLLERS = {
    "newreno": "reno",
    "cubic": "cubic",
    "bic": "bic",
    "highspeed": "highspeed",
    "scalable": "scalable",
    "h-tcp": "htcp",
    "hybla": "hybla",
    "dctcp": "dctcp",
    "bbr": "bbr",
    "vegas": "vegas",
    "illinois": "illinois",
    "westwood": "westwood",
    "veno": "veno",
    "yeah": "yeah",
    "lp": "lp",
    "cdg": "cdg",
    "nv": "nv",
}
# Converts a value of a scenario to the kernel's value; `None` if the kernel has no such value.
Mapped = Callable[[float], int | None]


def _whole(value: float) -> int | None:
    return int(value) if value == int(value) else None


def _parts_of(whole: int) -> Mapped:
    """Converts shares to parts of `whole`, rounded to the nearest."""
    return lambda value: round(value * whole)


def _shift(value: float) -> int | None:
    """Converts 1 / 2^n to n, which is at most 10 in the kernel."""
    return next((n for n in range(11) if value == 2.0**-n), None)


# The parameter of the module, with the conversion of values, by controller and parameter of the scenario.
PARAMETERS: dict[tuple[str, str], tuple[str, Mapped]] = {
    ("cubic", "beta"): ("beta", _parts_of(1024)),
    # The kernel's C is in units of 10 / 1024 segments per second cubed.
    ("cubic", "c"): ("bic_scale", lambda value: round(value * 102.4)),
    ("cubic", "fast_convergence"): ("fast_convergence", _whole),
    ("bic", "max_increment"): ("max_increment", _whole),
    ("bic", "low_window"): ("low_window", _whole),
    ("bic", "smooth_part"): ("smooth_part", _whole),
    ("bic", "beta"): ("beta", _parts_of(1024)),
    ("bic", "fast_convergence"): ("fast_convergence", _whole),
    ("h-tcp", "rtt_scaling"): ("use_rtt_scaling", _whole),
    ("h-tcp", "bandwidth_switch"): ("use_bandwidth_switch", _whole),
    # From seconds to milliseconds.
    ("hybla", "reference_rtt"): ("rtt0", lambda value: round(value * 1000)),
    ("dctcp", "g"): ("dctcp_shift_g", _shift),
    ("dctcp", "initial_alpha"): ("dctcp_alpha_on_init", _parts_of(1024)),
    ("vegas", "alpha"): ("alpha", _whole),
    ("vegas", "beta"): ("beta", _whole),
    ("vegas", "gamma"): ("gamma", _whole),
    ("illinois", "win_thresh"): ("win_thresh", _whole),
    ("illinois", "theta"): ("theta", _whole),
    ("cdg", "window"): ("window", lambda value: int(value) if value in (2**n for n in range(9)) else None),
    ("cdg", "backoff_beta"): ("backoff_beta", _parts_of(1024)),
    ("cdg", "backoff_factor"): ("backoff_factor", _whole),
    ("cdg", "use_shadow"): ("use_shadow", _whole),
    ("cdg", "use_ineff"): ("use_ineff", _whole),
    ("cdg", "use_tolerance"): ("use_tolerance", _whole),
    # The other parameters of tcp_nv are constants in its source.
    ("nv", "nv_pad"): ("nv_pad", _whole),
    ("nv", "nv_min_cwnd"): ("nv_min_cwnd", _whole),
    # In seconds, also in the kernel.
    ("nv", "nv_reset_period"): ("nv_reset_period", _whole),
}


def settable(controller: str) -> list[str]:
    """The parameters of a controller that its module can take."""
    return [name for owner, name in PARAMETERS if owner == controller]


def module_word(controller: str, name: str, value: float) -> str | None:
    """A parameter as the kernel's command line takes it; `None` if the kernel has no such value."""
    key, mapped = PARAMETERS[controller, name]
    number = mapped(value)
    return None if number is None else f"tcp_{CONTROLLERS[controller]}.{key}={number}"
