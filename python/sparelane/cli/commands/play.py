"""`sparelane play`: opens a scenario in the playground, the simulator in a page of the browser."""

from __future__ import annotations

import webbrowser

import click

from sparelane.cli import completion
from sparelane.cli.commands import scenario_input, stopping
from sparelane.play.address import AddressError, fragment

LAST_PORT = 65_535


@click.command("play")
@click.argument("file", metavar="[FILE]", required=False, shell_complete=completion.scenario_files)
@click.option(
    "--port",
    type=click.IntRange(1, LAST_PORT),
    help="Port on the loopback interface.  [default: a free one]",
)
@click.option("--no-open", "stays_closed", is_flag=True, help="Print the address, but do not open a browser.")
def command(file: str | None, port: int | None, stays_closed: bool) -> None:
    """Open the playground: the simulator in a page of your browser.

    FILE is a scenario, the name of a ready-made scenario, or - for standard input. The page shows windows, queues and
    single packets, and compares variants. The command serves the page on 127.0.0.1 until Ctrl-C. The page makes no
    requests; scenarios and results stay in the browser.

    Exits with 2 if FILE cannot be read, the port is taken, or this installation has no page.
    """
    from sparelane.play import server

    page = server.read_page()
    scenario = "" if file is None else _fragment(file)
    try:
        served = server.Server(page, port or 0)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise click.BadParameter(f"cannot use port {port}: {reason}", param_hint="--port") from error
    address = f"{served.address}{scenario}"
    with served, stopping.terminated_as_interrupted():
        click.echo(f"The playground is at {address}")
        click.echo("Press Ctrl-C to end.", err=True)
        if not stays_closed and not webbrowser.open(address):
            click.echo("sparelane: no browser was found; open the address in one", err=True)
        try:
            served.serve_forever()
        except KeyboardInterrupt:
            # Ctrl-C is the way to end this command, so it is no failure.
            return


def _fragment(file: str) -> str:
    """The part of the address that holds the scenario."""
    source = scenario_input.read(file)
    try:
        return fragment(source.name, source.text)
    except AddressError as error:
        raise click.BadParameter(str(error), param_hint="FILE") from error
