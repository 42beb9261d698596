"""Make the pictures in docs/pictures: `python -m docs_build.pictures [NAME ...]` (or: make pictures).

Pictures of pages are taken by Chromium from pages that longshift writes here and now; figures are drawn by the
functions that the reports use. The runs are those in results/ and small ones on the embedded digits.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import longshift
from longshift.analysis import friedman, nemenyi_critical_difference, rank_groups
from longshift.report import method_title, rank_diagram, split_panels
from longshift.report.drawing import PALETTE
from results.numbers import FEW, TUNED, cases, site_mean
from results.tables import resnet50

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def screenshot(page: Path, name: str, height: int = 900) -> None:
    """Take a picture of the top of a page."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise FileNotFoundError(f"expected one of {', '.join(BROWSERS)} on the path, found none")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=3000"]
    place = [f"--window-size=1100,{height}", f"--user-data-dir={page.parent}", f"--screenshot={OUT / name}"]
    subprocess.run([program, *flags, *place, page.resolve().as_uri()], check=True, capture_output=True, timeout=120)


def longshift_command(*words: str) -> None:
    """Run the command line of longshift."""
    code = "from longshift.cli.main import main; main()"
    subprocess.run([sys.executable, "-c", code, *words], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def sweep_report(folder: Path) -> None:
    """The page of a sweep: the confirmation of NDCL-plus on PACS."""
    page = folder / "report.html"
    longshift_command("report", "results/pacs-mobilenetv2/style-confirm", "--html", str(page))
    screenshot(page, "report.png")


def fit_report(folder: Path) -> None:
    """The page of a fit, on the embedded digits."""
    longshift_command(
        "fit", "digits", "--method", "bsoftmax", "--steps", "150", "--out", str(folder / "fit"), "--quiet"
    )
    screenshot(folder / "fit" / "report.html", "fit-report.png", height=460)


def rare_classes(folder: Path) -> None:
    """Rare classes at an unseen domain, with ERM and with NDCL-plus: the rows of the table in README.md."""
    rows: dict[str, Callable[[str], float]] = {
        "PACS, four looks": lambda name: resnet50.mean(name, measure=FEW),
        "HAM10000, skin lesions": lambda name: site_mean("natural-sites", "HAM10000", f"{name}+ema", FEW),
        "WBC, blood cells": lambda name: site_mean("natural-sites", "WBC", f"{name}+ema", FEW),
    }
    figure, axes = plt.subplots(figsize=(8, 0.4 + 0.75 * len(rows)), layout="constrained")
    for row, mean in enumerate(rows.values()):
        for place, (name, color) in enumerate({"erm": "#9aa3ad", "ndcl_plus": PALETTE[0]}.items()):
            value = mean(name)
            bar = axes.barh(row + 0.36 * place, value, 0.34, color=color, label="" if row else method_title(name))
            axes.bar_label(bar, [f"{value:.1f} %"], padding=4)
    axes.set_yticks([row + 0.18 for row in range(len(rows))], list(rows))
    axes.set_title("Images of rare classes that are recognized at an unseen domain", loc="left", fontsize=12)
    axes.set(xlim=(0, 100), xticks=[])
    axes.invert_yaxis()
    axes.tick_params(left=False)
    axes.spines[:].set_visible(False)
    axes.legend(loc="center right", frameon=False)
    figure.savefig(OUT / "rare-classes.png", dpi=130)


def ranks(folder: Path) -> None:
    """Average ranks of the 24 methods and NDCL-plus, fine-tuned on PACS."""
    scores = cases(TUNED, ["ndcl_plus"])
    test = friedman(scores)
    difference = nemenyi_critical_difference(scores.shape[1], scores.shape[0])
    groups = [[method_title(name) for name in group] for group in rank_groups(test.ranks, difference)]
    titles = {method_title(name): rank for name, rank in test.ranks.items()}
    rank_diagram(titles, difference, groups, test.cases).save(OUT / "pacs-ranks.svg")


def settings(folder: Path) -> None:
    """The training counts of two settings on the embedded digits."""
    data = longshift.load_dataset("digits")
    settings = [longshift.setting_for(data, name, target="ink") for name in ("TotalHeavyTail", "Duality")]
    split_panels([longshift.make_split(data, setting) for setting in settings]).save(OUT / "settings.svg")


def digits(folder: Path) -> None:
    """Three classes in each of the four styles."""
    data = longshift.load_dataset("digits")
    pixels = longshift.open_store(data, size=32).inputs
    figure, axes = plt.subplots(3, 4, figsize=(4.4, 3.5))
    for column, domain in enumerate(data.domain_names):
        axes[0, column].set_title(domain, fontsize=10)
        for row, label in enumerate((2, 5, 8)):
            first = int(np.flatnonzero((data.domains == column) & (data.labels == label))[0])
            axes[row, column].imshow(pixels[first])
            axes[row, column].axis("off")
    figure.tight_layout()
    figure.savefig(OUT / "digits.png", dpi=110)


PICTURES: dict[str, Callable[[Path], None]] = {
    "report": sweep_report,
    "fit-report": fit_report,
    "rare-classes": rare_classes,
    "pacs-ranks": ranks,
    "settings": settings,
    "digits": digits,
}


def main() -> None:
    """Make all pictures, or those that are named."""
    for name in sys.argv[1:] or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            PICTURES[name](Path(folder))
        print(f"{name}: done", flush=True)


if __name__ == "__main__":
    main()
