"""Step time with style mixing as a ratio to the same method without it, in one run.

    python -m benchmarks.style --out results/style-cost.csv      # on a GPU: ResNet-50, batch 3 x 32, 224 px, compiled

Both runs are kept warm and timed in turn, a few steps each, so that a machine that slows down slows down both. The
ratio is that of the medians.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.common import machine, made_up_task, step_parser, warm_timer, write_rows
from longshift.training.device import resolve_device


def styled(style: str, share: float) -> dict[str, float | str]:
    """The hyper-parameters of a style."""
    return {"style": style} if style == "none" else {"style": style, "style_share": share}


def main() -> None:
    """Measure, print one line per method and style, write a CSV."""
    cuda = torch.cuda.is_available()
    parser = step_parser(__doc__, steps=20 if cuda else 5, compile="on" if cuda else "off", augment=True)
    parser.add_argument("--methods", default="ndcl_plus,erm")
    parser.add_argument("--styles", default="both,amplitude,convolution,statistics")
    parser.add_argument("--share", type=float, default=0.5, help="share of the images that is styled")
    parser.add_argument("--rounds", type=int, default=10 if cuda else 3, help="times that the timed steps are repeated")
    args = parser.parse_args()
    device = resolve_device(args.device)
    task = made_up_task(7, args.size)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for method in args.methods.split(","):
            styles = ["none", *args.styles.split(",")]
            steps = args.rounds * args.steps
            runs = {
                s: warm_timer(method, task, args, steps, styled(s, args.share), Path(folder) / f"{method}-{s}")
                for s in styles
            }
            times: dict[str, list[float]] = {s: [] for s in styles}
            for _ in range(args.rounds):
                for style, run in runs.items():
                    times[style].append(run.seconds(args.steps) / args.steps)
            for run in runs.values():
                run.close()
            plain = float(np.median(times["none"]))
            for style in styles:
                seconds = float(np.median(times[style]))
                rows.append(
                    {"backbone": args.backbone, "size": args.size, "batch": 3 * args.batch, "method": method,
                     "style": style, "compile": args.compile, "seconds_per_step": f"{seconds:.5g}",
                     "ratio": f"{seconds / plain:.3f}", **machine(device)}
                )  # fmt: skip
                print(f"{method:12} {style:12} {seconds * 1e3:8.3f} ms per step  {seconds / plain:.3f}", flush=True)
            write_rows(args.out, rows)


if __name__ == "__main__":
    main()
