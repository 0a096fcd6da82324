"""Help texts: examples for every command, and summaries of commands in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

# Example command lines of each command. A test requires that every command has some.
EXAMPLES: Mapping[str, Sequence[str]] = {
    "": (
        "sparelane run dumbbell-cubic -o out",
        "sparelane new question.toml --sweep",
        "sparelane sweep question.toml --seeds 5 -o results",
        "sparelane compare results",
    ),
    "list": (
        "sparelane list",
        "sparelane list cubic",
        "sparelane list '[[link]]'",
        "sparelane list ecn",
        "sparelane list droptail",
        "sparelane list 'initial window' --json",
    ),
    "new": ("sparelane new first.toml", "sparelane new question.toml --sweep"),
    "convert": (
        "sparelane convert topology.txt flow.txt -o fabric.toml",
        "sparelane convert abilene.xml --set topology.capacity_unit=1Mbps",
        "sparelane convert dumbbell-cubic.toml --to hpcc -o hpcc",
    ),
    "check": (
        "sparelane check dumbbell-cubic",
        "sparelane check question.toml --seeds 5",
        "sparelane check rc3-internet2 --set duration=1s",
    ),
    "run": (
        "sparelane run dumbbell-cubic",
        "sparelane run first.toml --set queue.limit=100packets --seed 7 -o out",
        "sparelane run dumbbell-cubic --seeds 5",
        "sparelane run dumbbell-cubic --trace flow=0,port=west:east -o traced",
    ),
    "play": ("sparelane play", "sparelane play rc3-example-66", "sparelane play first.toml --no-open --port 8040"),
    "sweep": (
        "sparelane sweep question.toml --seeds 5 -o results",
        'sparelane sweep dumbbell-cubic --set \'queue.limit=["0.5bdp", "1bdp"]\' -o buffers',
    ),
    "compare": (
        "sparelane compare results",
        "sparelane compare results --baseline tcp --json differences.json",
        "sparelane compare first.toml second.toml --seeds 10",
    ),
    "plot": ("sparelane plot out", "sparelane plot results --x queue.limit -o buffers.svg"),
    "report": ("sparelane report results", "sparelane report out -o answer.html"),
    "schema": ("sparelane schema -o scenario.schema.json", "sparelane schema --sweep"),
    "reproduce": (
        "sparelane reproduce rc3/fig8-load --quick",
        "sparelane reproduce rc3 --quick --check -o out/rc3",
        "sparelane reproduce rtcp --jobs 2 --json rows.json",
    ),
    "bench": (
        "sparelane bench",
        "sparelane bench --duration 50ms --json timings.json",
        "sparelane bench --ladder",
        "sparelane bench --million",
    ),
    "keys": ("sparelane keys new", "sparelane keys show"),
    "keys new": ("sparelane keys new",),
    "keys show": ("sparelane keys show", "sparelane keys show --keys /etc/sparelane/keys --json"),
    "keys trust": ("sparelane keys trust FINGERPRINT --remark 'the server'",),
    "keys untrust": ("sparelane keys untrust FINGERPRINT",),
    "recv": (
        "sparelane recv -o received",
        "sparelane recv --listen :4747 -o received --cc cubic --metrics 9100",
    ),
    "partial": ("sparelane partial list inbox", "sparelane partial clean inbox --partial-age 7"),
    "partial list": ("sparelane partial list inbox",),
    "partial clean": ("sparelane partial clean inbox --partial-age 7",),
    "send": (
        "sparelane send data.tar 192.0.2.7",
        "sparelane send --compare time --exclude '*.tmp' photos archive",
        "tar c results | sparelane send --name results.tar - archive",
    ),
    "tunnel": (
        "sparelane tunnel --listen :7778 --allow 127.0.0.1:22",
        "sparelane tunnel --forward 127.0.0.1:2222=127.0.0.1:22 192.0.2.7:7778",
    ),
    "path": ("sparelane path 192.0.2.7",),
    "kernel": ("sparelane kernel doctor", "sudo sparelane kernel load rtcp --default"),
    "kernel load": (
        "sudo sparelane kernel load rtcp --default",
        "sudo sparelane kernel load rapid --interface eth0 -- iperf3 -c 192.0.2.7",
    ),
    "kernel unload": ("sudo sparelane kernel unload rtcp",),
    "kernel list": ("sparelane kernel list", "sparelane kernel list --json"),
    "kernel doctor": ("sparelane kernel doctor",),
    "kernel watch": ("sudo sparelane kernel watch rtcp --seconds 10 -o samples.parquet",),
    "linux": ("sparelane linux build",),
    "linux build": ("sparelane linux build", "sparelane linux build --rc3 --jobs 2"),
    "harm": (
        "sparelane harm --serve 0.0.0.0:4749",
        "sparelane harm 192.0.2.7 --tcp 192.0.2.7:4749",
        "sudo sparelane harm --local --rate 50 --seconds 5",
    ),
    "emulate": (
        "sudo sparelane emulate dumbbell-cubic --for 60",
        "sudo sparelane emulate dumbbell-cubic --host right0 -- iperf3 -s -1 --host left0 -- iperf3 -c {right0}",
    ),
}


def with_examples(command: click.Command, path: str) -> click.Command:
    """Adds the examples of `path`, such as `keys new`, to the end of the command's help."""
    if path in EXAMPLES:
        text = "\n".join(("\b", "Examples:", *(f"  {line}" for line in EXAMPLES[path])))
        before = command.epilog.split("\n\n\b")[0] if command.epilog and not command.epilog.startswith("\b") else ""
        command.epilog = f"{before}\n\n{text}" if before else text
    return command


def write_commands(group: click.Group, context: click.Context, formatter: click.HelpFormatter) -> None:
    """Lists the commands of a group with the complete first sentence of each help text."""
    commands = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    rows = [
        (name, command.get_short_help_str(limit=10_000))
        for name, command in commands
        if command is not None and not command.hidden
    ]
    if rows:
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Group(click.Group):
    """A group of commands with complete summaries, and with examples in the help texts."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands."""
        write_commands(self, ctx, formatter)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with examples in its help."""
        command = self.load(ctx, cmd_name)
        return command and with_examples(command, f"{self.name} {cmd_name}")

    def load(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command without examples. Groups that import commands lazily override this method."""
        return super().get_command(ctx, cmd_name)
