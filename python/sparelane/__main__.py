"""`python -m sparelane`: the command line."""

from sparelane.cli.main import main

main(prog_name="sparelane")
