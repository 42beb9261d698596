"""Arrays in `fit` and `predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longshift
from longshift.errors import UsageError
from longshift.fitting.array_data import data_path
from tests.training.runs import CPU

X = np.random.default_rng(0).normal(size=(60, 4))
Y, D = np.repeat([0, 1], 30), np.tile(["north", "south", "west"], 20)


@pytest.mark.slow
def test_from_arrays_to_predictions(tmp_path: Path) -> None:
    x = X + 3 * Y[:, None]
    options: dict[str, Any] = {"method": "erm", "steps": 30, "hparams": {"batch_size": 8}, "runtime": CPU}
    done = longshift.fit(x, Y, D, out=tmp_path / "fit", **options)
    assert done.look.sites == ("north", "south", "west")
    found = longshift.predict(done.folder, x, device="cpu")
    assert [row.path for row in found.rows[:2]] == ["0", "1"]
    assert np.mean([row.label == str(label) for row, label in zip(found.rows, Y, strict=True)]) > 0.9
    again = longshift.fit(x, Y, D, out=tmp_path / "fit", **options)
    assert again.summary.accuracy == done.summary.accuracy
    with pytest.raises(longshift.errors.LongshiftError, match="holds another fit"):
        longshift.fit(x + 1, Y, D, out=tmp_path / "fit", **options)
    with pytest.raises(UsageError, match=r"Expected vectors \(N, 4\), got \(3, 5\)"):
        longshift.predict(done.folder, np.zeros((3, 5)), device="cpu")


def test_images_in_an_array(digits_run: Path) -> None:
    from longshift.data.digits import digit_images

    pixels = digit_images()[::300]
    found = longshift.predict(digits_run, pixels, device="cpu")
    model = longshift.load_model(digits_run, device="cpu")
    import torch

    expected = model.probabilities(torch.from_numpy(pixels.copy())).max(1)[0]
    np.testing.assert_allclose([row.probability for row in found.rows], expected, rtol=1e-5)
    with pytest.raises(UsageError, match="Expected images"):
        longshift.predict(digits_run, pixels.astype(np.float32), device="cpu")
    with pytest.raises(TypeError, match="Expected `inputs` to be paths, or an array"):
        longshift.predict(digits_run, [3], device="cpu")  # type: ignore[list-item]


def test_what_is_not_data(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"or arrays: fit\(X, y, domains\).* got ndarray without y and domains"):
        longshift.fit(X)
    with pytest.raises(TypeError, match="got int"):
        longshift.fit(3, Y, D)
    with pytest.raises(TypeError, match="got a path with y or domains"):
        longshift.fit("digits", Y)
    with pytest.raises(UsageError, match=r"got \(60, 4\), \(59,\) and \(60,\)"):
        data_path(X, Y[1:], D, tmp_path)
