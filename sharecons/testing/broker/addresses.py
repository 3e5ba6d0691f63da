"""The addresses that brokers bind, and those by which clients reach them."""

import ipaddress
from typing import Final

from sharecons.testing.broker.cluster import Broker

__all__ = ["brokers_at", "format_address", "parse_address", "wildcard_version"]

LAST_PORT: Final = 65535
LOOPBACK: Final = {4: "127.0.0.1", 6: "::1"}


def format_address(host: str, port: int) -> str:
    """Return `host:port`, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(text: str) -> tuple[str, int]:
    """Parse `HOST:PORT` or `HOST`; the port is 0 if there is none.

    Raises:
        ValueError: it is neither.
    """
    host, port = text, ""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        valid = bracket and colon in ("", ":") and bool(colon) == bool(port)
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
        valid = bool(port)
    else:
        valid = ":" not in text or _is_ipv6(text)
    if not (valid and host and not host.isspace()) or not _is_port(port or "1"):
        raise ValueError(f"{text!r} is not HOST:PORT, or [HOST]:PORT for IPv6")
    return host, int(port or 0)


def brokers_at(count: int, host: str, port: int, advertise: str | None) -> list[Broker]:
    """Return brokers with node ids 1, 2, … at consecutive ports.

    Args:
        count: the number of brokers.
        host: the address to bind.
        port: the first broker's port; 0 chooses a free port for each broker.
        advertise: the first broker's address for clients, if it is another one.

    Raises:
        ValueError: a port is out of range, or clients cannot connect to `advertise`.
    """
    for name, number in (("brokers", count), ("port", port)):
        if not isinstance(number, int):
            raise TypeError(f"{name} must be an int, not {number!r}")
    if count < 1:
        raise ValueError(f"brokers must be at least 1, not {count}")
    host = host.removeprefix("[").removesuffix("]")
    host = "0.0.0.0" if host in ("", "*") else host
    version = wildcard_version(host)
    shown, first = (LOOPBACK.get(version, host), 0) if version else (host, 0)
    if advertise is not None:
        shown, first = parse_address(advertise)
        if wildcard_version(shown):
            raise ValueError(
                f"clients cannot connect to {shown}: advertise another address"
            )
    return [
        Broker(
            number + 1,
            shown,
            _port_at(first or port, number),
            bind_address=(host, _port_at(port, number)),
            binds_wildcard=bool(version) and advertise is None,
        )
        for number in range(count)
    ]


def wildcard_version(host: str) -> int:
    """Return the IP version of a wildcard address (0.0.0.0 or ::), or 0."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return 0
    return address.version if address.is_unspecified else 0


def _is_ipv6(text: str) -> bool:
    try:
        return bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False


def _port_at(first: int, number: int) -> int:
    if first == 0:
        return 0
    if not 0 < first + number <= LAST_PORT:
        raise ValueError(f"port {first + number} is not between 1 and {LAST_PORT}")
    return first + number


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < int(text) <= LAST_PORT
