"""Write the methods page and the tables in README.md, docs/ and results/ from the published runs.

    python -m results.docs_tables          # rewrite every table between its markers, and the methods page
    python -m results.docs_tables --check  # name pages with stale tables; exit code 1 if there are any

A page marks a table with `<!-- table: NAME -->` and `<!-- end -->`. To add a table, write a function that returns
Markdown in the module of its page (`*_tables.py`), add it to `TABLES`, put the two markers on a page, and run the
command (or `make tables`).
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from longshift.report import method_title
from longshift.sweep import run_columns
from results import fine_tuned_tables, frozen_tables, new_site, numbers as n, plus_tables, theory_tables, variant_tables
from results.methods_page import PAGE, methods_page

ROOT = n.RESULTS.parent


def columns() -> str:
    """The schema of the table of runs; columns that repeat others at another step are one row."""
    rows = [
        [f"`{column.name}`", column.type, column.meaning, "yes" if column.machine else "", column.since]
        for column in run_columns()
        if not column.name.startswith(("last_", "oracle_target_"))
    ]
    rows.append(["`last_...`", "number", "the measures from `validation_accuracy` on, at the last step", "", "0.1"])
    rows.append(["`oracle_target_...`", "number", "the measures of the target, at the oracle step", "", "0.1"])
    return n.markdown(["column", "type", "meaning", "machine", "since"], rows)


def readme() -> str:
    """Four methods on seeds that no choice has seen."""
    names = {
        "erm": "ERM",
        "ndcl": "NDCL, as published",
        "bsoftmax": "BSoftmax, counts per domain",
        "ndcl_plus": "[NDCL-plus](docs/explanation/ndcl-plus.md), our method",
    }
    rows = [[title, *n.pairs_of_means(n.CONFIRM, name, n.SETTINGS)] for name, title in names.items()]
    rows.insert(-1, ["BSoftmax with our style mixing", *plus_tables.styled_bsoftmax()])
    for other in ("bsoftmax", "erm"):
        gained = [n.gap(n.CONFIRM, "ndcl_plus", other, m, (setting,)) for setting in n.SETTINGS for m in n.ACCURACY]
        rows.append([n.pair_title("ndcl_plus", other), *gained])
    return n.markdown(["", *n.with_few(n.SETTINGS)], rows)


def over_erm() -> str:
    """Points over ERM in three series of runs."""
    rows = [
        [f"{method_title(method)}: {setting}", *(n.gap_to_erm(folder, method, setting) for folder in n.SERIES.values())]
        for method in ("ndcl", "bsoftmax", n.UNSTYLED)
        for setting in n.SETTINGS
    ]
    return n.markdown(["points over ERM", *n.SERIES], rows)


def runs() -> str:
    """What was run, where it is and what made it."""
    rows = []
    for file in sorted(n.RESULTS.rglob("runs.parquet")):
        folder = file.parent.relative_to(n.RESULTS).as_posix()
        frame = n.table(folder)
        own = frame[~frame["method"].str.contains("+", regex=False)]
        rows.append([
            f"[{folder}](../../results/{folder})", f"{own['fingerprint'].nunique():,}", str(own["method"].nunique()),
            ", ".join(name for name in n.SETTINGS if name in set(own["setting"])), str(own["target"].nunique()),
            str(own["trial"].nunique()), ", ".join(f"{steps:,}" for steps in sorted(set(own["steps"]))),
            ", ".join(sorted(set(own["commit"]))), ", ".join(sorted(set(own["device"]))),
        ])  # fmt: skip
    return n.markdown(["folder", "runs", "rows", "settings", "targets", "trials", "steps", "commits", "device"], rows)


def load() -> str:
    """CPU seconds and peak memory of commands on 1x, 2x and 4x of a load, and how both grow."""
    with (n.RESULTS / "load.csv").open(encoding="utf-8", newline="") as file:
        measured = list(csv.DictReader(file))
    kinds = dict.fromkeys((row["load"], row["command"]) for row in measured)
    rows = []
    for unit, command in kinds:
        found = {int(row["factor"]): row for row in measured if (row["load"], row["command"]) == (unit, command)}
        seconds, memory, sizes = (
            [float(row[key]) for row in found.values()] for key in ("cpu_seconds", "peak_mib", "n")
        )
        grown = f"{seconds[-1] / seconds[0]:.1f} for {sizes[-1] / sizes[0]:.0f} x" if len(found) > 1 else "one size"
        rows.append([f"{_series(sizes)} {unit}", command, _series(seconds), _series(memory), grown])
    return n.markdown(["load", "command", "CPU seconds", "peak memory, MiB", "growth of time"], rows)


def _series(values: Sequence[float]) -> str:
    return " / ".join(f"{value:,.0f}" for value in values)


TABLES: dict[str, Callable[[], str]] = {
    "load": load,
    "new-site-coverage": new_site.coverage_table,
    "new-site-errors": new_site.error_table,
    "new-site-mixes": new_site.mix_table,
    "new-site-warnings": new_site.warning_table,
    "new-site-labels": new_site.label_table,
    "columns": columns,
    "readme": readme,
    "over-erm": over_erm,
    "runs": runs,
    "fine-tuned": fine_tuned_tables.fine_tuned,
    "fine-tuned-pairs": fine_tuned_tables.fine_tuned_pairs,
    "two-series": fine_tuned_tables.two_series,
    "fine-tuned-lengths": partial(fine_tuned_tables.lengths, n.TUNED),
    "shots": fine_tuned_tables.shots,
    "long": fine_tuned_tables.long_runs,
    "long-methods": fine_tuned_tables.long_methods,
    "large-images": fine_tuned_tables.large_images,
    "large-images-pairs": fine_tuned_tables.large_pairs,
    "large-images-lengths": partial(fine_tuned_tables.lengths, n.LARGE),
    "paper": fine_tuned_tables.paper,
    "frozen": frozen_tables.frozen,
    "frozen-average": frozen_tables.frozen_average,
    "frozen-pairs": partial(frozen_tables.frozen_pairs, 1),
    "frozen-lengths": partial(fine_tuned_tables.lengths, n.FROZEN),
    "frozen-style": frozen_tables.frozen_style,
    "frozen-style-pairs": frozen_tables.frozen_style_pairs,
    "searched": frozen_tables.searched,
    "searched-pairs": partial(frozen_tables.frozen_pairs, 3),
    "variants-fine-tuned": partial(variant_tables.variants, f"{n.TUNED}/study"),
    "variants-by-setting": partial(variant_tables.variants_by_setting, f"{n.TUNED}/study"),
    "variants-frozen": partial(variant_tables.variants, f"{n.FROZEN}/study"),
    "variants-frozen-pairs": variant_tables.frozen_changes,
    "candidates": variant_tables.candidates,
    "two-changes": variant_tables.two_changes,
    "plus-series": plus_tables.plus_series,
    "plus-twenty": plus_tables.plus_twenty,
    "plus-neighbors": plus_tables.plus_neighbors,
    "style-choice": plus_tables.style_choice,
    **{
        f"{name}{suffix}": partial(build, other)
        for suffix, other in (("", "bsoftmax"), ("-erm", "erm"))
        for name, build in (
            ("confirmation", plus_tables.confirmation),
            ("confirmation-shots", plus_tables.confirmation_shots),
            ("confirmation-targets", plus_tables.confirmation_targets),
        )
    },
    "confirmation-units": plus_tables.confirmation_units,
    "confirmation-ranks": plus_tables.confirmation_ranks,
    "style-for-others": plus_tables.style_for_others,
    "style-ranks": plus_tables.style_ranks,
    "mixstyle": plus_tables.mixstyle,
    "efficientnet": plus_tables.efficientnet,
    "efficientnet-long": plus_tables.efficientnet_long,
    "no-style-difference": plus_tables.no_style_difference,
    "style-cost": plus_tables.style_cost,
    "confirmation-theory": plus_tables.confirmation_theory,
    "confirmation-means": plus_tables.confirmation_means,
    "probe": plus_tables.probe,
    "theory-fine-tuned": partial(theory_tables.theory, n.TUNED),
    "theory-large-images": partial(theory_tables.theory, n.LARGE),
    "theory-frozen": partial(theory_tables.theory, n.FROZEN),
    "orders": theory_tables.orders,
    "rank-tests": theory_tables.rank_tests,
    "control-tests": theory_tables.control_tests,
}
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Pages that may hold tables."""
    return sorted(path for where in ("*.md", "docs/**/*.md", "results/**/*.md") for path in ROOT.glob(where))


def names(page: str) -> list[str]:
    """The tables that a page marks."""
    return [match[1] for match in MARKED.findall(page)]


def filled(page: str) -> str:
    """The page with every marked table written anew."""
    return MARKED.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}\n{match[3]}", page)


def main() -> None:
    """Rewrite the tables, or name the pages where they are stale."""
    check, stale = "--check" in sys.argv, False
    for page in pages():
        old = page.read_text(encoding="utf-8")
        new = filled(old)
        if new != old:
            stale = True
            print(f"{'stale' if check else 'wrote'}: {page.relative_to(ROOT)}")
            if not check:
                page.write_text(new, encoding="utf-8")
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != methods_page():
        stale = True
        print(f"{'stale' if check else 'wrote'}: {PAGE.relative_to(ROOT)}")
        if not check:
            PAGE.write_text(methods_page(), encoding="utf-8")
    if check and stale:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
