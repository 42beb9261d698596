"""What style mixing adds to six methods, and MixStyle on features beside it, on fresh seeds."""

from __future__ import annotations

from longshift.report import method_title
from results import numbers as n

OFF = {name: (n.CONFIRM, name) for name in ("erm", "ndcl", "bsoftmax")}
OFF |= {"ndcl_plus": (n.OTHERS, n.UNSTYLED), "reweight": (n.OTHERS, "reweight"), "tcri": (n.OTHERS, "tcri")}
ON = {name: (n.OTHERS, f"{method_title(name)}, style") for name in OFF} | {"ndcl_plus": (n.CONFIRM, "ndcl_plus")}
DIGITS = "mixstyle/digits"
ROWS = [
    *((f"{method_title(name)}: on - off", ON[name], OFF[name], n.SETTINGS) for name in OFF),
    ("NDCL-plus - BSoftmax, both off", OFF["ndcl_plus"], OFF["bsoftmax"], n.SETTINGS),
    ("NDCL-plus - BSoftmax, both on", ON["ndcl_plus"], ON["bsoftmax"], n.SETTINGS),
    ("BSoftmax: MixStyle on features - off", ("mixstyle/pacs", "BSoftmax, MixStyle"), OFF["bsoftmax"], n.BOTH),
    ("digits, BSoftmax: on - off", (DIGITS, "BSoftmax, style"), (DIGITS, "bsoftmax"), n.BOTH),
    ("digits, BSoftmax: MixStyle - off", (DIGITS, "BSoftmax, MixStyle"), (DIGITS, "bsoftmax"), n.BOTH),
]


def table() -> str:
    """Differences in points with 95 % intervals."""
    rows = []
    for title, one, other, settings in ROWS:
        every, few = (n.gaps(one, other, measure, settings) for measure in (n.TARGET, n.FEW))
        rows.append([title, n.interval(every), n.ahead(every), n.interval(few)])
    target, known, few = (
        n.gaps(ON["ndcl_plus"], OFF["ndcl_plus"], measure, n.SETTINGS) for measure in (n.TARGET, n.VALIDATION, n.FEW)
    )
    target, few = (gain.where(n.fit_mixes(target, known), 0.0) for gain in (target, few))
    title = f"{method_title('ndcl_plus')}: as `fit` would choose - off"
    rows.insert(len(OFF), [title, n.interval(target), n.ahead(target), n.interval(few)])
    return n.markdown(["points", "all classes", "pairs ahead", "rare classes"], rows)
