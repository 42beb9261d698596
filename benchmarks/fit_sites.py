"""Fits without one site, measured at that site; see results/fit-sites.

    python -m benchmarks.fit_sites FOLDER HAM10000 vienna_dias

FOLDER holds HAM10000.zip, WBC.zip and resnet50_v1_in1k.safetensors. A row is added to results/fit-sites/sites.csv as
soon as it is measured. Several sites can run at once; an interrupted fit resumes from runs/fit-sites.
"""

from __future__ import annotations

import argparse
import csv
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import longshift
from benchmarks.common import machine
from longshift.inference import evaluate_site
from longshift.training import Runtime

OUT = Path("results/fit-sites/sites.csv")
FITS = Path("runs/fit-sites")


def copy_sites(archive: Path, out: Path, keep: Callable[[str], bool]) -> Path:
    """Write a zip of NAME/site/class/image with some of the sites, and with all files beside the sites."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(out, "w") as part:
        for entry in whole.infolist():
            parts = Path(entry.filename).parts
            if not entry.is_dir() and (len(parts) == 2 or keep(parts[1])):
                part.writestr(entry.filename, whole.read(entry))
    return out


def main() -> None:
    """Fit and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("data", help="name of the archive")
    parser.add_argument("site", help="the site that is left out")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--size", type=int, default=160, help="side of the images in pixels")
    parser.add_argument("--trainable", default="all", choices=("all", "head"))
    parser.add_argument("--seed", type=int, default=0, help="of the split and of the training")
    args = parser.parse_args()
    archive, out = args.folder / f"{args.data}.zip", FITS / f"{args.data}-{args.site}-{args.trainable}-{args.seed}"
    known = copy_sites(archive, out / "known.zip", lambda site: site != args.site)
    new = copy_sites(archive, out / "new.zip", lambda site: site == args.site)
    begun = time.perf_counter()
    done = longshift.fit(
        known, out=out / "fit", network="resnet50_v1", weights=str(args.folder / "resnet50_v1_in1k.safetensors"),
        image_size=args.size, steps=args.steps if args.trainable == "all" else None,
        trainable=args.trainable, split_seed=args.seed, train_seed=args.seed, runtime=Runtime(), say=print,
    )  # fmt: skip
    seconds, style = time.perf_counter() - begun, done.summary.style
    model = done.model()
    plain, adapted = (evaluate_site(model, new, adapt=adapt)[0] for adapt in ("off", "auto"))
    held_out = done.summary.balanced
    row = {
        "data": args.data, "site": args.site, "trainable": args.trainable, "seed": args.seed,
        "method": done.summary.title, "mixes": int(style.mixes) if style else 0,
        "on": style.on if style else "", "off": style.off if style else "",
        "held_out": held_out.mean, "over_classes": plain.found.balanced_accuracy,
        "over_samples": plain.found.accuracy, "expected": plain.expected.accuracy.mean if plain.expected else "",
        "adapted": adapted.adapted.strength if adapted.adapted else 0.0,
        "adapted_over_classes": adapted.found.balanced_accuracy, "adapted_over_samples": adapted.found.accuracy,
        "seconds": seconds, **machine(model.device),
    }  # fmt: skip
    first = not OUT.exists()
    with OUT.open("a", newline="") as file:
        table = csv.DictWriter(file, list(row), lineterminator="\n")
        if first:
            table.writeheader()
        table.writerow({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
    print(row, flush=True)


if __name__ == "__main__":
    main()
