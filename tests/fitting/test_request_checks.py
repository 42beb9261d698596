"""A request is checked for the network that the fit chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from longshift.errors import UsageError
from longshift.fitting.request_checks import make_draft
from longshift.fitting.style_trial import styles_to_try
from longshift.training import OpenDataset


@pytest.mark.parametrize(
    ("network", "tried"),
    [
        ({"backbone": "resnet18", "image_size": 128}, True),
        ({"backbone": "resnet18"}, True),
        ({"image_size": 96}, True),
        ({}, False),  # images of 48 pixels go through the small network, for which style mixing is off
    ],
)
def test_options_of_style_are_judged_for_the_network_of_the_fit(
    tmp_path: Path, network: dict[str, Any], tried: bool
) -> None:
    for site in ("north", "south"):
        for level, name in ((60, "dark"), (190, "light")):
            (tmp_path / "small" / site / name).mkdir(parents=True)
            for i in range(4):
                Image.new("RGB", (48, 48), (level + i,) * 3).save(tmp_path / "small" / site / name / f"{i}.png")
    request = {
        "target": None, "method": "ndcl_plus", "steps": 2, "backbone": "auto", "weights": None, "pretrained": None,
        "image_size": 0, "trainable": None, "head": "mlp", "views": 1, "average": "none",
        "hparams": {}, "style": {"share": 0.3}, "split_seed": 0, "train_seed": 0, "minutes": None, **network,
    }  # fmt: skip
    dataset = OpenDataset(str(tmp_path / "small"))
    if tried:
        config = make_draft(dataset, request, gpu=False).config
        assert styles_to_try(config, {"share": 0.3}) == ("none", "both")
    else:
        with pytest.raises(UsageError, match="style"):
            make_draft(dataset, request, gpu=False)
