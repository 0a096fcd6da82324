"""Writes the addresses of the playground: a scenario in the part after `#`, which browsers send to no server.

The form is that of `web/src/state/share.ts`: `1.` and Base64 for URLs of raw deflate of JSON.
"""

from __future__ import annotations

import base64
import json
import zlib

# Limits of the page, which does not read longer ones.
MAX_FRAGMENT = 65_536
MAX_JSON_BYTES = 1_000_000
MAX_LABEL = 40


class AddressError(ValueError):
    """A scenario that does not fit into an address."""


def fragment(label: str, toml: str) -> str:
    """The fragment for one scenario, with its `#`.

    Raises:
        AddressError: the scenario is too long.
    """
    shared = {"variants": [{"label": label[:MAX_LABEL], "toml": toml}]}
    text = json.dumps(shared, ensure_ascii=False).encode()
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(text) + packer.flush()
    found = f"#1.{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"
    if len(text) > MAX_JSON_BYTES or len(found) > MAX_FRAGMENT:
        raise AddressError(
            f"the scenario has {len(toml.encode()):,} bytes and does not fit into an address; "
            "open the page without it and drop the file onto the page"
        )
    return found
