"""Warnings, log lines, usage errors and tracebacks: names in them cannot move the cursor or change colors.

Results, tables and progress are escaped where they are printed (`longshift.cli.common`); these come from Python, from
the libraries below, and from the parser of the command line.
"""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from longshift.text import printable


class PrintableFormatter(logging.Formatter):
    """Log lines with control characters escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        return printable(super().format(record))


def escape_warnings_and_logs() -> None:
    """Escape control characters in all warnings and log lines of this process."""
    plain = warnings.formatwarning

    def formatwarning(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        return printable(plain(message, category, filename, lineno, line))

    warnings.formatwarning = formatwarning
    if logging.lastResort is not None:  # what prints the lines of loggers without a handler
        logging.lastResort.setFormatter(PrintableFormatter())


@contextmanager
def escape_usage_errors() -> Iterator[None]:
    """Escape control characters in the messages of the parser, which repeat what was typed or expanded by a shell."""
    try:
        yield
    except click.ClickException as error:
        vars(error)["message"] = printable(error.message)
        raise


def print_traceback() -> None:
    """Print the exception that is being handled, with control characters escaped."""
    sys.stderr.write(printable(traceback.format_exc()))
