"""Style mixing where the domains look alike."""

from __future__ import annotations

from results import numbers as n

DATA = {"photo": ("ndcl_plus", n.UNSTYLED), "digits": ("NDCL-plus, with style", "ndcl_plus")}  # on, off


def table() -> str:
    """Style on against off, and as `fit` would choose from the runs for the other parts."""
    rows = []
    for title, (on, off) in DATA.items():
        folder = f"no-style-difference/{title}"
        gain, validation = (
            n.gaps((folder, on), (folder, off), measure, (n.TAIL,)) for measure in (n.TARGET, n.VALIDATION)
        )
        means = [n.text(n.by_method(folder, n.TARGET)[name].mean()) for name in (off, on)]
        rows.append([title, *means, n.interval(gain), n.interval(gain.where(n.fit_mixes(gain, validation), 0.0))])
    return n.markdown(["domains alike", "off", "on", "on - off", "as `fit` would choose - off"], rows)
