"""What things are called and in which order they stand, as in the paper. Kept here so that a report needs no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable

# name -> (title, group of rows); the groups are the paper's, ruled off from each other in its tables.
_METHODS = {
    "erm": ("ERM", "dg"), "irm": ("IRM", "dg"), "groupdro": ("GroupDRO", "dg"), "mixup": ("Mixup", "dg"),
    "mldg": ("MLDG", "dg"), "coral": ("CORAL", "dg"), "mmd": ("MMD", "dg"), "dann": ("DANN", "dg"),
    "sagnet": ("SagNet", "dg"), "vrex": ("VREx", "dg"), "fish": ("Fish", "dg"), "fishr": ("Fishr", "dg"),
    "eqrm": ("EQRM", "dg"), "rdm": ("RDM", "dg"), "pgrad": ("PGrad", "dg"), "tcri": ("TCRI", "dg"),
    "focal": ("Focal", "imbalance"), "reweight": ("ReWeight", "imbalance"), "bsoftmax": ("BSoftmax", "imbalance"),
    "ldam": ("LDAM", "imbalance"),
    "ginidg": ("GINIDG", "idg"), "boda": ("BoDA", "idg"), "samaltdg": ("SAMALTDG", "idg"),
    "ndcl": ("NDCL", "ndcl"),
}  # fmt: skip
_PRESETS = {"ndcl_plus": "NDCL-plus"}  # not the paper's; in tables they are variants of their method
FAMILIES = {
    "dg": "domain generalization",
    "imbalance": "class imbalance",
    "idg": "imbalanced domain generalization",
    "ndcl": "negatives-dominant contrastive learning",
    "other": "other methods",
}
_DATASETS = ("VLCS", "PACS", "OfficeHome", "DomainNet")
_SETTINGS = ("GINIDG", "TotalHeavyTail", "Duality", "Cross", "Balanced", "Natural")
GROUPS = {"accuracy": "Average", "many": "Many", "medium": "Medium", "few": "Few"}
RULES = {
    "validation": "by accuracy on the balanced validation set of the training domains",
    "oracle": "by accuracy on the target itself: an upper bound, not a result",
    "last": "last step, hyper-parameters by its accuracy on the balanced validation set",
}


def method_title(name: str) -> str:
    """The name as printed; an unknown method keeps its own, and "ndcl+ema" is "NDCL + EMA"."""
    base, plus, average = name.partition("+")
    title = _METHODS.get(base, (_PRESETS.get(base, base), ""))[0]
    return f"{title} + {average.upper()}" if plus else title


def family(name: str) -> str:
    """The group of rows a method stands in: variants in their method's, methods the paper does not have come last."""
    return _METHODS.get(base_method(name), ("", "other"))[1]


def base_method(name: str) -> str:
    """The method that a row belongs to by its name: "ndcl" of "ndcl+ema", "ndcl_prior" and "NDCL, no mixup"."""
    base = name.partition("+")[0]
    first = re.split(r"[^A-Za-z0-9]", base, maxsplit=1)[0].casefold()
    return first if base not in _METHODS and first in _METHODS else base


def is_averaged(name: str) -> bool:
    """Whether a row is of averaged weights, "ndcl+ema": further weights of the runs of another row."""
    return "+" in name


def is_variant(name: str) -> bool:
    """Whether a row is of a known method with other values: "ndcl_prior", "NDCL, no mixup"."""
    return base_method(name) != name.partition("+")[0]


def order_methods(names: Iterable[str]) -> list[str]:
    """As in the paper, others after them by name; after a method its averaged weights, its presets, its variants."""
    place = {name: i for i, name in enumerate(_METHODS)}

    def key(name: str) -> tuple[int, bool, bool, str, str]:
        own, _, average = name.partition("+")
        return place.get(base_method(name), len(place)), own not in place, own not in _PRESETS, own, average

    return sorted(set(names), key=key)


def order_datasets(names: Iterable[str]) -> list[str]:
    """As in the paper, others after them by name."""
    return _ordered(names, _DATASETS)


def order_settings(names: Iterable[str]) -> list[str]:
    """As in the paper, others after them by name."""
    return _ordered(names, _SETTINGS)


def _ordered(names: Iterable[str], known: tuple[str, ...]) -> list[str]:
    place = {name: i for i, name in enumerate(known)}
    return sorted(set(names), key=lambda name: (place.get(name, len(known)), name))
