"""Titles, order and texts of reports: names from their registrations, words from templates. Needs no PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from longshift.data import all_benchmarks
from longshift.methods import FAMILIES as METHOD_FAMILIES, MethodInfo, method_infos
from longshift.settings import setting_names
from longshift.templates import environment

if TYPE_CHECKING:
    import pandas as pd

AVERAGES = ("ema", "swa")  # kinds of averaged weights, the end of a row's name
PROPOSED = "ndcl"  # the paper's own method: its tables rule it off from the other methods
FAMILIES = METHOD_FAMILIES | {PROPOSED: "negatives-dominant contrastive learning", "other": "other methods"}
GROUPS = {"accuracy": "Average", "many": "Many", "medium": "Medium", "few": "Few"}
RULES = {
    "validation": "by accuracy on the balanced validation set of the training domains",
    "oracle": "by accuracy on the target itself: an upper bound, not a result",
    "last": "last step, hyper-parameters by its accuracy on the balanced validation set",
}


def words(text: str, **facts: object) -> str:
    """A text of templates/words.txt.j2 in one line, filled in."""
    templates = environment("longshift.report")
    templates.globals |= {"title": method_title, "RULES": RULES}
    templates.filters["title"] = method_title
    templates.tests["averaged"] = is_averaged
    return " ".join(str(getattr(templates.get_template("words.txt.j2").module, text)(**facts)).split())


def _known() -> dict[str, MethodInfo]:
    return {info.name: info for info in method_infos()}


def method_title(name: str) -> str:
    """The printed name of a method; "ndcl+ema" is "NDCL + EMA", and an unknown method keeps its name."""
    own, average = split_average(name)
    info = _known().get(own)
    title = info.title if info else own
    return f"{title} + {average.upper()}" if average else title


def split_average(name: str) -> tuple[str, str]:
    """The name of a row without its kind of averaged weights, and that kind: ("ndcl", "ema") for "ndcl+ema"."""
    own, _, average = name.rpartition("+")
    return (own, average) if own and average in AVERAGES else (name, "")


def family(name: str) -> str:
    """The group of rows that a method belongs to; variants belong to the group of their method."""
    base = base_method(name)
    info = _known().get(base)
    if info is None:
        return "other"
    return PROPOSED if base == PROPOSED else info.family


def base_method(name: str) -> str:
    """The method that a row belongs to by its name: "ndcl" for "ndcl+ema", "ndcl_prior" and "NDCL, no mixup"."""
    base, _ = split_average(name)
    methods = {info.name for info in method_infos() if not info.preset_of}
    first = re.split(r"[^A-Za-z0-9]", base, maxsplit=1)[0].casefold()
    return first if base not in methods and first in methods else base


def is_averaged(name: str) -> bool:
    """Whether a row is about averaged weights ("ndcl+ema"), other weights of the runs of another row."""
    return bool(split_average(name)[1])


def is_variant(name: str) -> bool:
    """Whether a row is about a known method with other values: "ndcl_prior", "NDCL, no mixup"."""
    return base_method(name) != split_average(name)[0]


def order_methods(names: Iterable[str]) -> list[str]:
    """By family and row of the paper; after a method come its averaged weights, its presets and its variants."""
    known, families = _known(), list(FAMILIES)

    def key(name: str) -> tuple[object, ...]:
        own, average = split_average(name)
        base = base_method(name)
        row = known[base].row if base in known else 0
        preset = own in known and own != base
        return families.index(family(name)), row == 0, row, base, own != base, not preset, own, average

    return sorted(set(names), key=key)


def order_datasets(names: Iterable[str]) -> list[str]:
    """As in the paper, others after them by name."""
    return _ordered(names, tuple(all_benchmarks()))


def order_settings(names: Iterable[str]) -> list[str]:
    """As in the paper, others after them by name."""
    return _ordered(names, setting_names())


def order_places(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """The pairs of dataset and setting in a table of runs, setting by setting."""
    there = set(zip(frame["dataset"], frame["setting"], strict=True))
    datasets, settings = order_datasets(frame["dataset"]), order_settings(frame["setting"])
    return [(dataset, setting) for setting in settings for dataset in datasets if (dataset, setting) in there]


def _ordered(names: Iterable[str], known: tuple[str, ...]) -> list[str]:
    place = {name: i for i, name in enumerate(known)}
    return sorted(set(names), key=lambda name: (place.get(name, len(known)), name))
