"""`sparelane keys`: makes, shows and trusts the keys of hosts."""

from __future__ import annotations

import json
import shlex

import click

from sparelane import _native
from sparelane.cli.commands.help import Group
from sparelane.cli.commands.wire_options import keys_option
from sparelane.cli.main import Mistake
from sparelane.terminal.streams import STREAMS

KEYS = keys_option("Folder of the keys.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("keys", cls=Group)
def command() -> None:
    """Make, show and trust the keys of hosts."""


@command.command("new")
@KEYS
@click.option("--quiet", is_flag=True, help="Print only the fingerprint.")
@AS_JSON
def new(keys: str, quiet: bool, as_json: bool) -> None:
    """Make a key pair that only its owner can read, and print its fingerprint."""
    fingerprint = _native.new_key(keys)
    STREAMS.saved(f"the key is saved in {keys}; `sparelane keys show --keys {shlex.quote(keys)}` prints it")
    if as_json:
        click.echo(json.dumps({"fingerprint": fingerprint, "keys": keys}))
    elif quiet:
        click.echo(fingerprint)
    else:
        click.echo(f"{fingerprint}\nThe key is in {keys}. Peers trust this host with --trust and the line above.")


@command.command("show")
@KEYS
@AS_JSON
def show(keys: str, as_json: bool) -> None:
    """Print the fingerprints of this host's key and of trusted peers."""
    fingerprint, trusted = _native.show_keys(keys)
    if as_json:
        remarks = {peer: remark for peer, remark in trusted if remark}
        click.echo(
            json.dumps({"fingerprint": fingerprint, "trusted": [peer for peer, _ in trusted], "remarks": remarks})
        )
    else:
        click.echo(fingerprint)
        for peer, remark in trusted:
            click.echo(f"trusts {peer} {remark}".rstrip())


@command.command("trust")
@KEYS
@click.argument("fingerprint")
@click.option("--remark", default="", help="A note on the peer, such as its name.")
@AS_JSON
def trust(keys: str, fingerprint: str, remark: str, as_json: bool) -> None:
    """Trust the peer with this FINGERPRINT from now on."""
    is_new = _native.trust(keys, fingerprint, remark)
    if as_json:
        click.echo(json.dumps({"trusted": fingerprint, "remark": remark, "new": is_new}))
    elif is_new:
        of_whom = f" ({remark})" if remark else ""
        click.echo(f"{fingerprint}{of_whom} is trusted from now on; running programs reload {keys} on SIGHUP")
    else:
        click.echo(f"{fingerprint} was trusted already; its remark in {keys} is unchanged")


@command.command("untrust")
@KEYS
@click.argument("fingerprint")
@AS_JSON
def untrust(keys: str, fingerprint: str, as_json: bool) -> None:
    """Stop trusting the peer with this FINGERPRINT. Running programs reload their keys on SIGHUP."""
    if not _native.untrust(keys, fingerprint):
        raise Mistake(f'{keys} does not trust "{fingerprint}"; `sparelane keys show` lists trusted peers')
    if as_json:
        click.echo(json.dumps({"untrusted": fingerprint}))
    else:
        click.echo(f"{fingerprint} is no longer trusted; running programs reload {keys} on SIGHUP")
