"""Addresses of hosts: their notation, their resolution, and the aliases of the file `hosts.toml`.

The file is in the folder of the user's configuration:

```toml
[archive]
address = "archive.example.org"
port = 7777
fingerprint = "8c4c…"
cc = "rc3"
```

A command to `archive` then goes to that address and accepts no other key there.
"""

from __future__ import annotations

import re
import socket
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparelane import _native
from sparelane._native import WireError
from sparelane.common import folders
from sparelane.common.names import either, near

# The UDP port of `recv` and `tunnel` if an address has none.
DEFAULT_PORT = 7777

MOST_PORT = 65535

ALIAS_FORM = "a table for each alias, with address, fingerprint and optionally port and cc"
FINGERPRINT = re.compile(r"[0-9a-fA-F]{64}")


def keys_folder() -> Path:
    """The folder of keys that is used if no other one is named."""
    return folders.config_folder() / "keys"


def hosts_file() -> Path:
    """The file of aliases. It may not exist."""
    return folders.config_folder() / "hosts.toml"


@dataclass(frozen=True, slots=True)
class Peer:
    """The host that a command contacts.

    Attributes:
        address: `HOST:PORT`.
        fingerprint: the only key that is accepted; `None` accepts the trusted peers of the folder of keys.
        controller: the congestion controller that the alias names, if any.
    """

    address: str
    fingerprint: str | None = None
    controller: str | None = None


def peer(text: str) -> Peer:
    """Finds the host that `text` names: `ALIAS`, `ALIAS:PORT`, `HOST` or `HOST:PORT`.

    Raises:
        WireError: the address or the file of aliases is invalid.
    """
    aliases = read_aliases(hosts_file())
    name, _, port = text.partition(":")
    if name in aliases:
        found = aliases[name]
        if not port and name == text:
            return found
        host, _ = split(found.address)
        return Peer(join(host, split(text)[1]), found.fingerprint, found.controller)
    return Peer(join(*split(text, DEFAULT_PORT)))


def read_aliases(path: Path) -> dict[str, Peer]:
    """Reads the aliases from a file. There are none if the file does not exist.

    Raises:
        WireError: the file is invalid, or users other than its owner can write to it.
    """
    text = _native.read_config(str(path))
    if text is None:
        return {}
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WireError(f"{path}: {error}") from error
    aliases = {}
    for name, table in tables.items():
        try:
            aliases[name] = _alias(name, table)
        except ValueError as error:
            raise WireError(f"{path}: {error}") from error
    return aliases


def _alias(name: str, table: Any) -> Peer:
    """Checks the table of an alias.

    Raises:
        ValueError: a key is unknown, missing or invalid.
    """
    if not isinstance(table, dict):
        raise ValueError(f'"{name}" is no table; allowed: {ALIAS_FORM}')
    where = f"the alias [{name}]"
    kinds: Mapping[str, type] = {"address": str, "port": int, "fingerprint": str, "cc": str}
    for key, value in table.items():
        if key not in kinds:
            likely = near(key, kinds)
            hint = f"did you mean {either(likely)}?" if likely else f"allowed: {', '.join(kinds)}"
            raise ValueError(f'{where} has the unknown key "{key}"; {hint}')
        if type(value) is not kinds[key]:
            form = "a whole number" if kinds[key] is int else "a text in quotes"
            raise ValueError(f"{where} has {key} = {value!r}; allowed: {form}")
    if not name or set(name) & set(":[]/ "):
        raise ValueError(f"{where} has a name that cannot be told from an address; allowed: no colon, slash or space")
    for key in ("address", "fingerprint"):
        if not table.get(key):
            remedy = ": `sparelane keys show` on that host prints it" if key == "fingerprint" else ""
            raise ValueError(f"{where} has no {key}, which is needed{remedy}")
    port = table.get("port", DEFAULT_PORT)
    if not 1 <= port <= MOST_PORT:
        raise ValueError(f"{where} has port = {port}; allowed: 1 to {MOST_PORT}")
    if not FINGERPRINT.fullmatch(table["fingerprint"]):
        raise ValueError(f'{where}: "{table["fingerprint"]}" is not a fingerprint, which has 64 hexadecimal digits')
    host = table["address"]
    # An IPv6 address may be written without brackets here, since the port has its own key.
    if ":" in host.strip("[]") and host.count(":") == 1:
        raise ValueError(f'{where} has address = "{host}"; allowed: an address without port; port = sets the port')
    return Peer(join(host.removeprefix("[").removesuffix("]"), port), table["fingerprint"].lower(), table.get("cc"))


def join(host: str, port: int) -> str:
    """Writes an address, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split(text: str, default_port: int | None = None) -> tuple[str, int]:
    """Splits `HOST:PORT` without resolving the name. The host has no brackets.

    Args:
        text: the address.
        default_port: the port of an address that has none. Without it, such an address is an error.

    Raises:
        WireError: the address has another form.
    """
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        is_form = bool(bracket) and (not rest or rest.startswith(":"))
        colon, port = rest[:1], rest[1:]
    else:
        host, colon, port = text.partition(":")
        is_form = ":" not in port
    allowed = "HOST:PORT" if default_port is None else "HOST or HOST:PORT"
    if not is_form or not host or bool(colon) != bool(port) or (not port and default_port is None):
        brackets = ", with IPv6 addresses in brackets" if text.count(":") > 1 and not text.startswith("[") else ""
        raise WireError(f'"{text}" is not an address; allowed: {allowed}{brackets}')
    if port and not (port.isascii() and port.isdigit() and int(port) <= MOST_PORT):
        raise WireError(f'"{text}" is not an address; allowed: {allowed}, with a port up to {MOST_PORT}')
    return host, int(port) if port else default_port or 0


def listening(text: str) -> str:
    """Completes the address of a UDP socket: `ADDR:PORT`, `:PORT` for all addresses of this host, or `ADDR`.

    Raises:
        WireError: the address has another form.
    """
    if text.startswith(":"):
        port = text[1:]
        if not (port.isascii() and port.isdigit() and int(port) <= MOST_PORT):
            raise WireError(f'"{text}" is not an address; allowed: [ADDR]:PORT, with a port up to {MOST_PORT}')
        return join("::" if _receives_both() else "0.0.0.0", int(port))
    return join(*split(text, DEFAULT_PORT))


def _receives_both() -> bool:
    """True if a socket at `::` also receives IPv4 packets, unlike on systems without IPv6."""
    try:
        with closing(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)) as trial:
            trial.bind(("::", 0))
            return trial.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 0
    except OSError:
        return False


def resolve_all(address: str) -> list[str]:
    """Resolves `HOST:PORT` to numeric addresses, in the system's order of preference.

    IPv6 addresses are in brackets; link-local ones include the number of the interface.

    Raises:
        WireError: the address is malformed, or the name cannot be resolved.
    """
    host, port = split(address)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WireError(f'"{host}": {reason}{_similar_alias(host)}') from error
    return list(dict.fromkeys(_numeric(family, tuple(at)) for family, _, _, _, at in found))


def _similar_alias(host: str) -> str:
    """A hint if `host` resembles an alias."""
    likely = near(host, read_aliases(hosts_file()))
    return f"; did you mean the alias {either(likely)}?" if likely else ""


def _numeric(family: int, at: Sequence[Any]) -> str:
    if family != socket.AF_INET6:
        return f"{at[0]}:{at[1]}"
    numeric = str(at[0]).partition("%")[0]
    return f"[{numeric}%{at[3]}]:{at[1]}" if at[3] else f"[{numeric}]:{at[1]}"


def resolve(address: str) -> str:
    """Resolves `HOST:PORT` to its first numeric address, with IPv6 addresses in brackets.

    Raises:
        WireError: the address is malformed, or the name cannot be resolved.
    """
    return resolve_all(address)[0]
