"""Addresses of hosts and routers, in either family."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of nodes, as patterns of `router`, `number` and `end`.

    Attributes:
        length: the length of the prefix of a cable, bits.
        forwarding: the setting that makes a node forward packets.
        access: the pattern for a host and for its router on the same cable.
        between: the pattern for both ends of a cable between routers.
        behind: the pattern for the prefix of all hosts at a router.
    """

    length: int
    forwarding: str
    access: str
    between: str
    behind: str

    def host(self, router: int, number: int) -> tuple[str, str]:
        """The addresses of a host and of its router, whose place in the row is `router`, from 0."""
        one, other = (self.access.format(router=router + 1, number=number, end=end) for end in (1, 2))
        return one, other

    def row(self, number: int) -> tuple[str, str]:
        """The addresses of both ends of a cable between routers."""
        one, other = (self.between.format(number=number, end=end) for end in (1, 2))
        return one, other

    def hosts(self, router: int) -> str:
        """The prefix of the hosts at a router."""
        return self.behind.format(router=router + 1)


FOUR = Addresses(
    24,
    "/proc/sys/net/ipv4/ip_forward",
    access="10.{router}.{number}.{end}",
    between="10.0.{number}.{end}",
    behind="10.{router}.0.0/16",
)
SIX = Addresses(
    64,
    "/proc/sys/net/ipv6/conf/all/forwarding",
    access="fd00:{router:x}:{number:x}::{end}",
    between="fd00:0:{number:x}::{end}",
    behind="fd00:{router:x}::/32",
)
