"""Imported once by the process that commands in tests are forked from."""

import gc

from tests.commands import import_all

import_all()
gc.freeze()  # garbage collections of the commands need not visit what is imported
