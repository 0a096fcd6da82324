"""The command line: `sparelane COMMAND`. Each command is a module of `sparelane.cli.commands`."""
