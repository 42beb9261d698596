"""The networks of `fit --network`."""

from __future__ import annotations

import pandas as pd
import timm

from longshift.fitting.network_choice import NETWORKS
from results import numbers as n


def table() -> str:
    """One row per network: license as timm has it, size and speed as measured."""
    measured = pd.read_csv(n.RESULTS / "networks.csv").set_index("network")
    rows = []
    for network in NETWORKS:
        config = timm.get_pretrained_cfg(network.name)
        assert config is not None
        found = measured.loc[network.name]
        accuracy = f"{network.accuracy} ({network.measured}; {network.source})"
        level = f"`{network.level}`" if network.level else "its name"
        speed = f"{found['images_per_second']:.3g}"
        rows.append([level, f"`{network.name}`", f"{found['millions']:.0f}", str(config.license), accuracy, speed])
    return n.markdown(
        ["`--network`", "network", "million weights", "license", "ImageNet, %", "images per second"], rows
    )
