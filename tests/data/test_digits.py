"""The embedded digits: counts, labels, fixed pixels, and a domain shift that hurts."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import Tensor, nn

from longshift.data import digits, load_dataset, open_source, open_store, read_pixels
from longshift.data.digits import enlarge, slant
from longshift.data.manifest import Manifest, Row
from longshift.errors import LongshiftError


def test_four_balanced_domains_of_ten_classes() -> None:
    manifest = load_dataset("digits")
    assert set(manifest.domain_names) == {"ink", "chalk", "neon", "stamp"}
    assert manifest.classes == tuple("0123456789")
    assert len(manifest) == 1797
    table = manifest.count_table()
    assert (table.max(0) - table.min(0)).max() <= 1
    assert table.min() >= 43


def test_every_handwritten_digit_appears_once_with_its_label() -> None:
    manifest = load_dataset("digits")
    numbers = [int(path.rsplit("/", 1)[1]) for path in manifest.paths]
    assert sorted(numbers) == list(range(1797))
    np.testing.assert_array_equal(load_digits().target[numbers], manifest.labels)


def test_files_of_digits_by_another_name() -> None:
    manifest = load_dataset("digits", "mine")
    with open_source(manifest) as source:
        found = read_pixels(source.read(manifest.paths[5]), digits.SIZE)
    np.testing.assert_array_equal(found, digits.digit_images()[5])


def test_pixels_are_fixed() -> None:
    """Everything downstream is compared across machines, so the pixels are held to the byte."""
    first = digits.digit_images()
    digits.digit_images.cache_clear()
    np.testing.assert_array_equal(first, digits.digit_images())
    assert (first.shape, first.dtype.name, first.flags.writeable) == ((1797, 32, 32, 3), "uint8", False)
    assert hashlib.sha256(first.tobytes()).hexdigest() == (
        "8553dce512aaa63a18efe792530ebae30261ddae8390fb0c7d804bafbd6266c0"
    )


def test_the_digit_can_be_seen_in_each_style() -> None:
    """Brightness follows the pen: strongly for each image, darker in ink and stamp, lighter in chalk and neon."""
    manifest = load_dataset("digits")
    strokes = enlarge(load_digits().images / 16)
    for domain, sign in (("ink", -1), ("stamp", -1), ("chalk", 1), ("neon", 1)):
        indices = manifest.indices(domain)
        gray = digits.digit_images()[indices].mean(-1)
        mine = strokes[[int(manifest.paths[i].rsplit("/", 1)[1]) for i in indices]]
        mine = slant(mine, {"chalk": 2, "stamp": -5}.get(domain, 0))
        correlations = [sign * np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(gray, mine, strict=True)]
        assert np.mean(correlations) > 0.6, domain
        assert np.min(correlations) > 0.1, domain


def test_enlarging_agrees_with_plain_interpolation() -> None:
    strokes = load_digits().images[:3] / 16
    tensor = torch.from_numpy(strokes)[:, None]
    expected = nn.functional.interpolate(tensor, (24, 24), mode="bilinear")[:, 0].numpy()
    found = enlarge(strokes)
    np.testing.assert_allclose(found[:, 4:28, 4:28], expected, atol=0.02)  # weights are rounded to 64ths
    assert found[:, :4].max() == found[:, :, 28:].max() == 0


def test_store_of_the_digits() -> None:
    store = open_store(load_dataset("digits"), 32)
    np.testing.assert_array_equal(store.inputs, digits.digit_images())
    smaller = open_store(load_dataset("digits", name="mine"), 16)
    assert smaller.inputs.shape == (1797, 16, 16, 3)
    expected = Image.fromarray(digits.digit_images()[5]).resize((16, 16), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(smaller.inputs[5], np.asarray(expected))
    assert smaller.fingerprint != store.fingerprint
    assert not smaller.inputs.flags.writeable


def test_other_data_without_files_has_no_store() -> None:
    manifest = Manifest.from_rows("other", None, [Row("a", "b", "c")])
    with pytest.raises(LongshiftError, match="other"):
        open_store(manifest, 32)


def accuracy(network: nn.Module, x: Tensor, y: Tensor) -> float:
    network.eval()
    with torch.no_grad():
        return float((network(x).argmax(1) == y).double().mean())


def train(x: Tensor, y: Tensor, training: Tensor, seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 10),
        )  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), 2e-3, weight_decay=1e-4)
    for _ in range(10):
        for rows in training[torch.randperm(len(training), generator=generator)].split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
    return network


@pytest.mark.slow
@pytest.mark.parametrize("target", ["ink", "chalk", "neon", "stamp"])
def test_a_network_trained_on_three_styles_loses_clearly_on_the_fourth(target: str) -> None:
    store = open_store(load_dataset("digits"), 32)
    manifest = store.manifest
    x = torch.from_numpy(np.array(store.inputs)).permute(0, 3, 1, 2).float() / 127.5 - 1
    y = torch.from_numpy(manifest.labels)
    unseen = torch.from_numpy(manifest.domains == manifest.domain_names.index(target))
    sources = torch.nonzero(~unseen).flatten()
    sources = sources[torch.randperm(len(sources), generator=torch.Generator().manual_seed(0))]
    held_out, training = sources[:260], sources[260:]
    network = train(x, y, training, seed=0)
    inside, outside = accuracy(network, x[held_out], y[held_out]), accuracy(network, x[unseen], y[unseen])
    assert inside > 0.88
    assert 0.2 < outside < 0.8  # chance is 0.1
    assert inside - outside > 0.1
