"""Style mixing where the domains look alike."""

from __future__ import annotations

from results import numbers as n

DATA = {"photo": ("ndcl_plus", n.UNSTYLED), "digits": ("NDCL-plus, with style", "ndcl_plus")}  # on, off


def table() -> str:
    """Style on against off, and as the other parts choose, which is how `fit` chooses."""
    rows = []
    for title, (on, off) in DATA.items():
        folder = f"no-style-difference/{title}"
        gain = n.gaps((folder, on), (folder, off), settings=(n.TAIL,))
        means = [n.text(n.by_method(folder, n.TARGET)[name].mean()) for name in (off, on)]
        rows.append([title, *means, n.interval(gain), n.interval(n.elsewhere(gain))])
    return n.markdown(["domains alike", "off", "on", "on - off", "as the other sites choose - off"], rows)
