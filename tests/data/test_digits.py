"""The embedded digits: counts, labels, fixed pixels."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from longshift.data import digits, load_dataset, open_source, open_store, read_pixels
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
