"""The errors that users see. Each names what was expected, what was given, and what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class LongshiftError(Exception):
    """Bad data or failed work: the command line prints it without a traceback and exits with 1."""

    exit_code = 1


class UsageError(LongshiftError):
    """The request itself is wrong (an unknown name, a value out of range): exit code 2."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration with mistakes; all of them are listed at once."""

    def __init__(self, mistakes: Sequence[str], source: str = "configuration") -> None:
        self.mistakes = tuple(mistakes)
        noun = "mistake" if len(self.mistakes) == 1 else "mistakes"
        lines = "\n".join(f"  - {m}" for m in self.mistakes)
        super().__init__(f"{len(self.mistakes)} {noun} in {source}:\n{lines}")


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """A message for a name that does not exist, with the close ones or, failing that, all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if not close:
        folded = {k.casefold(): k for k in known}
        close = [folded[c] for c in difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(known)}"
    return f"unknown {kind} {name!r}; {hint}"
