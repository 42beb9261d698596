"""The type of the fixture `run`, which calls `longshift` as a shell does."""

from collections.abc import Callable

Result = tuple[int, str, str]  # exit code, standard output, standard error
Run = Callable[..., Result]
