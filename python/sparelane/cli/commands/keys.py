"""`sparelane keys`: makes, shows and trusts the keys of hosts."""

from __future__ import annotations

import json
import shlex

import click

from sparelane import _native
from sparelane.cli.commands.help import Group
from sparelane.cli.main import Mistake
from sparelane.terminal.streams import STREAMS

FOLDER = click.option("--dir", "folder", required=True, metavar="D", help="Folder of the keys.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("keys", cls=Group)
def command() -> None:
    """Make, show and trust the keys of hosts."""


@command.command("new")
@FOLDER
@click.option("--quiet", is_flag=True, help="Print only the fingerprint.")
@AS_JSON
def new(folder: str, quiet: bool, as_json: bool) -> None:
    """Make a key pair that only its owner can read, and print its fingerprint."""
    fingerprint = _native.new_key(folder)
    STREAMS.saved(f"the key is saved in {folder}; `sparelane keys show --dir {shlex.quote(folder)}` prints it")
    if as_json:
        click.echo(json.dumps({"fingerprint": fingerprint, "dir": folder}))
    elif quiet:
        click.echo(fingerprint)
    else:
        click.echo(f"{fingerprint}\nThe key is in {folder}. Peers trust this host with --trust and the line above.")


@command.command("show")
@FOLDER
@AS_JSON
def show(folder: str, as_json: bool) -> None:
    """Print the fingerprints of this host's key and of trusted peers."""
    fingerprint, trusted = _native.show_keys(folder)
    if as_json:
        click.echo(json.dumps({"fingerprint": fingerprint, "trusted": trusted}))
    else:
        click.echo(fingerprint)
        for peer in trusted:
            click.echo(f"trusts {peer}")


@command.command("trust")
@FOLDER
@click.argument("fingerprint")
@click.option("--remark", default="", help="A note on the peer, such as its name.")
@AS_JSON
def trust(folder: str, fingerprint: str, remark: str, as_json: bool) -> None:
    """Trust the peer with this FINGERPRINT from now on."""
    _native.trust(folder, fingerprint, remark)
    if as_json:
        click.echo(json.dumps({"trusted": fingerprint, "remark": remark}))


@command.command("untrust")
@FOLDER
@click.argument("fingerprint")
@AS_JSON
def untrust(folder: str, fingerprint: str, as_json: bool) -> None:
    """Stop trusting the peer with this FINGERPRINT. Running programs reload their keys on SIGHUP."""
    if not _native.untrust(folder, fingerprint):
        raise Mistake(f'{folder} does not trust "{fingerprint}"; `sparelane keys show` lists trusted peers')
    if as_json:
        click.echo(json.dumps({"untrusted": fingerprint}))
