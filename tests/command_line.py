"""The command line as tests use it: in this process, or in one of its own."""

from __future__ import annotations

import sys

from click.testing import CliRunner, Result

from sparelane.cli.main import main

# The command in a process of its own, whatever is installed.
SPARELANE = [sys.executable, "-c", "from sparelane.cli.main import main; main()"]


def invoke(*arguments: object) -> Result:
    """Runs a command in this process; its arguments may be paths and numbers."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])
