"""Imported once by the process that commands in tests are forked from."""

from tests.commands import import_all

import_all()
