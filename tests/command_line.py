"""Runs the command line in tests, in this process or in a separate one."""

from __future__ import annotations

import sys

from click.testing import CliRunner, Result

from sparelane.cli.main import main

# The start of a command line in a separate process, which does not need an installed script.
SPARELANE = [sys.executable, "-c", "from sparelane.cli.main import main; main()"]


def invoke(*arguments: object) -> Result:
    """Runs a command in this process; its arguments may be paths and numbers."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])
