"""Numbers, lists and foreign names in sentences, on terminals and in spreadsheets."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Control characters but for tab and new line, marks that reverse the direction of writing, other ends of lines.
_CONTROL = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2028\\u2029\\u2066-\\u2069\\ud800-\\udfff]"
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def counted(number: float, word: str, plural: str = "") -> str:
    """A number with its noun: "1 run", "2 runs"; `plural` is for nouns that do not take an s."""
    return f"{number:{'g' if isinstance(number, float) else ''}} {agree(number, word, plural or word + 's')}"


def agree(number: float, singular: str, plural: str) -> str:
    """The form of a word that agrees with a number: "1 run is", "2 runs are"."""
    return singular if number == 1 else plural


def duration(seconds: float) -> str:
    """A time in words, in the unit that a reader would choose.

    >>> duration(0.2), duration(20), duration(90), duration(740), duration(6000)
    ('less than a second', '20 seconds', '1.5 minutes', '12 minutes', '1 hour 40 minutes')
    >>> duration(7200), duration(40_000), duration(440_000)
    ('2 hours', '11 hours', '5.1 days')
    """
    if round(seconds) < 1:
        return "less than a second"
    if round(seconds) < 60:
        return counted(round(seconds), "second")
    minutes = seconds / 60
    if round(minutes) < 60:
        return counted(round(minutes, 1) if minutes < 10 else round(minutes), "minute")
    hours, rest = divmod(round(minutes), 60)
    if hours < 10:
        return counted(hours, "hour") + (f" {counted(rest, 'minute')}" if rest else "")
    return counted(round(minutes / 60), "hour") if hours < 48 else counted(round(minutes / 1440, 1), "day")


def about(seconds: float) -> str:
    """An estimated time in words.

    >>> about(0.2), about(20)
    ('less than a second', 'about 20 seconds')
    """
    words = duration(seconds)
    return words if words.startswith("less") else f"about {words}"


def decimal(value: float, digits: int = 1, signed: bool = False) -> str:
    """A number with a fixed number of digits, and with its sign if wanted; zero has none.

    >>> decimal(1.26, signed=True), decimal(-0.04), decimal(0.04, signed=True)
    ('+1.3', '0.0', '0.0')
    """
    shown = f"{value:{'+' if signed else ''}.{digits}f}"
    return shown if float(shown) else f"{0:.{digits}f}"


def some(items: Iterable[str], limit: int = 5) -> str:
    """The first few of a list, for messages; odd characters are escaped."""
    listed = list(items)
    shown = ", ".join(ascii(item) if not item.isprintable() else item for item in listed[:limit])
    return shown + (f" and {len(listed) - limit} more" if len(listed) > limit else "")


def listed(items: Iterable[str], most: int = 6) -> str:
    """A list in a sentence; beyond `most`, how many more.

    >>> listed(["A", "B", "C"]), listed(["A", "B", "C"], 1)
    ('A, B and C', 'A and 2 more')
    """
    names = list(items)
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def any_of(items: Iterable[str], limit: int = 20) -> str:
    """A list of which each item is meant for itself, for messages; odd characters are escaped.

    >>> any_of(["photo"]), any_of(["art", "photo", "sketch"]), any_of(["art", "photo", "sketch"], 2)
    ('photo', 'art, photo or sketch', 'art, photo or one of 1 more')
    """
    listed = list(items)
    shown = [some([item]) for item in listed[:limit]]
    if len(listed) > limit:
        shown.append(f"one of {len(listed) - limit} more")
    return " or ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def printable(text: str) -> str:
    """The text for a terminal, with control characters escaped: a name must not move the cursor or change colors.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def csv_cell(value: object) -> object:
    """A value for a CSV file; a text that a spreadsheet would run as a formula gets a quote in front.

    >>> csv_cell("=1+1"), csv_cell("-1"), csv_cell("cat")
    ("'=1+1", '-1', 'cat')
    """
    if isinstance(value, str) and (value.startswith(_FORMULA) or _QUOTED.match(value)) and not _is_number(value):
        return f"'{value}"
    return value


def from_csv_cell(text: str) -> str:
    """Invert `csv_cell` for texts."""
    return text[1:] if _QUOTED.match(text) else text


_QUOTED = re.compile(r"'+[=+\-@\t\r]")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
