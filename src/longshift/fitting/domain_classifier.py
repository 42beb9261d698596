"""The methods as a scikit-learn estimator: `DomainClassifier(method="logistic").fit(X, y, domains=d)`."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from longshift.errors import LongshiftError
from longshift.fitting.plan import usual_batch, usual_steps
from longshift.inference import LoadedModel, calibrated_probabilities, load_model
from longshift.settings import NO_TARGET
from longshift.training import Interrupted, RunFolder, Runtime, resolve, resolve_device, train, use_threads

Array = npt.NDArray[Any]
FILES = ("model.json", "model.safetensors")
CHUNK = 8192
MOST_REPEATS = 10  # of a sample, on average


class DomainClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Train a method on vectors from several domains, with the interface of scikit-learn.

    The default is a linear classifier; other methods train a network with one hidden layer. Both take standardized
    columns. Up to `validation` samples per class and domain
    (at most a third of them) are held out: they select the best weights and calibrate the probabilities.

    Args:
        method: A name from `longshift.list_methods()`.
        hparams: Hyper-parameters of the method, such as `{"lr": 3e-4}`; those not given have their defaults for
            vectors.
        steps: Training steps; by default 20 passes over the data, from 200 to 300 steps. `logistic` takes one.
        validation: Validation samples per class and domain.
        random_state: Seed of the split, the initial weights and the batches; pass an int for reproducible results.
        device: "cpu", "cuda", or "auto" for a GPU if there is one.

    Attributes:
        classes_: The classes, sorted.
        domains_: The domains, sorted.
        n_features_in_: Number of columns of X.
        n_steps_: Training steps that were taken.
        model_: The trained model.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> y, d = rng.integers(0, 2, 300), rng.integers(0, 3, 300)
        >>> X = rng.normal(size=(300, 8)) + 3 * y[:, None] + d[:, None]
        >>> model = DomainClassifier("bsoftmax", random_state=0).fit(X, y, domains=d)
        >>> bool(model.score(X, y) > 0.9), model.predict_proba(X[:2]).shape
        (True, (2, 2))
    """

    # With metadata routing, pipelines and searches pass `domains` on to `fit` without set_fit_request.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"domains": True}

    def __init__(
        self,
        method: str = "logistic",
        *,
        hparams: Mapping[str, float | int | str | bool] | None = None,
        steps: int | None = None,
        validation: int = 5,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
    ) -> None:
        self.method = method
        self.hparams = hparams
        self.steps = steps
        self.validation = validation
        self.random_state = random_state
        self.device = device

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        domains: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> DomainClassifier:
        """Train the classifier.

        Args:
            X: Vectors, (samples, columns).
            y: Classes, (samples,); at least two.
            domains: Domains, (samples,); by default all samples are of one domain.
            sample_weight: How often each sample counts, (samples,): 2 is the same as the sample twice, 0 as without
                it. Fractions are relative to their mean and rounded to a tenth of it.

        Returns:
            The estimator itself.

        Raises:
            ValueError: If the data or a parameter is invalid, or if training diverges.
        """
        vectors: Array
        vectors, targets = validate_data(self, X, y, dtype=np.float32, ensure_min_samples=2)
        check_classification_targets(targets)
        given = np.zeros(len(targets), dtype=np.int64) if domains is None else column_or_1d(domains)
        check_consistent_length(vectors, given)
        repeats, scale = _repeats(sample_weight, vectors)
        # Sorted rows: the result does not depend on the order of the samples.
        kept = np.repeat(np.arange(len(vectors)), repeats)
        kept = kept[np.argsort(_row_bytes(vectors[kept]), kind="stable")]
        vectors, targets, given = vectors[kept], targets[kept], given[kept]
        self.classes_, labels = np.unique(targets, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("Expected at least 2 classes, got samples of 1 class.")
        if missing := sum(value is None or value != value for value in given.tolist()):
            raise ValueError(f"Expected the domain of each sample, got {missing} missing values in `domains`.")
        self.domains_, sources = np.unique(given, return_inverse=True)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        try:
            self._files = self._train(vectors, labels, sources, scale, seed)
        except LongshiftError as error:
            if isinstance(error, Interrupted):
                raise KeyboardInterrupt from error
            raise ValueError(str(error)) from error
        self.model_ = _model_of(self._files, self.device)
        self.n_steps_ = self.model_.info.steps
        return self

    def predict(self, X: npt.ArrayLike) -> Array:
        """Predict the class of each vector of X (samples, columns)."""
        best = self.predict_proba(X).argmax(1)
        predicted: Array = self.classes_[best]
        return predicted

    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """Predict calibrated probabilities (samples, classes), in the order of `classes_`."""
        check_is_fitted(self)
        vectors: Array = validate_data(self, X, dtype=np.float32, reset=False)
        model = self.model_
        chunks = torch.from_numpy(np.ascontiguousarray(vectors)).split(CHUNK)  # a reversed view has negative strides
        # In double precision a row has the same probabilities whichever rows come with it.
        with torch.no_grad(), use_threads(1):
            logits = torch.cat([model.predictor(chunk.to(model.device).double()).cpu() for chunk in chunks])
        probabilities: Array = calibrated_probabilities(logits, model.temperature).numpy()
        return probabilities

    def _train(self, vectors: Array, labels: Array, sources: Array, scale: int, seed: int) -> dict[str, bytes]:
        """Train in a temporary folder, as `longshift train` on a file of vectors, and return the files of the model.

        A sample of weight 1 has `scale` rows.
        """
        with tempfile.TemporaryDirectory(prefix="longshift-") as folder:
            table = Path(folder) / "vectors.npz"
            # Names of equal length, whose order is that of the numbers.
            np.savez(table, x=vectors, label=_names("class", labels), domain=_names("domain", sources))
            request: dict[str, Any] = {
                "data": str(table), "setting": "Natural", "shrink": True, "validation": scale * self.validation,
                "target": NO_TARGET, "method": self.method, "hparams": dict(self.hparams or {}),
                "schedules": "scaled", "split_seed": seed, "train_seed": seed,
            }  # fmt: skip
            # The lists of hashes in the user's cache are for data that are used again.
            runtime = Runtime(device=self.device, cache=Path(folder) / "cache")
            config = resolve(request, "DomainClassifier", cache=runtime.cache).config
            if "batch_size" not in request["hparams"]:
                request["hparams"]["batch_size"] = usual_batch(len(vectors) // scale, len(self.domains_), config)
                config = config.model_copy(update={"hparams": request["hparams"]})
            steps = usual_steps(len(vectors) // scale, len(self.domains_), config) if self.steps is None else self.steps
            request |= {"steps": steps, "eval_every": max(steps // 10, 1)}
            run = train(request, out=Path(folder) / "run", runtime=runtime)
            if not run.result["selected"]:
                raise LongshiftError(
                    "Expected finite losses, got an infinite or NaN loss before the first evaluation. "
                    'Use a smaller learning rate: hparams={"lr": ...}'
                )
            return {name: (RunFolder(run.folder).path / name).read_bytes() for name in FILES}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickle: the model as the bytes of its files, JSON and safetensors."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("model_", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state, and the model from the bytes of its files; on the CPU if its device is missing here."""
        super().__setstate__(state)
        if "_files" not in state:
            return
        device = self.device
        try:
            resolve_device(device)
        except LongshiftError as error:
            warnings.warn(f"{error}. The model is loaded on the CPU.", UserWarning, stacklevel=2)
            device = "cpu"
        self.model_ = _model_of(self._files, device)


def _repeats(weight: npt.ArrayLike | None, vectors: Array) -> tuple[Array, int]:
    """How often each sample is given to the method, which knows no weights, and how often one of weight 1 is."""
    if weight is None:
        return np.ones(len(vectors), dtype=np.int64), 1
    weights: Array = _check_sample_weight(weight, vectors, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Expected a positive sample_weight, got only zeros.")
    if (weights == np.rint(weights)).all() and weights.mean() <= MOST_REPEATS:
        return weights.astype(np.int64), 1
    return np.rint(MOST_REPEATS * weights / weights.mean()).astype(np.int64), MOST_REPEATS


def _row_bytes(vectors: Array) -> Array:
    """Each row as one value that can be sorted."""
    rows: Array = np.ascontiguousarray(vectors).view(np.dtype((np.void, vectors.shape[1] * vectors.itemsize))).ravel()
    return rows


def _names(noun: str, indices: Array) -> Array:
    return np.array([f"{noun} {index:06d}" for index in indices])


def _model_of(files: Mapping[str, bytes], device: str) -> LoadedModel:
    """The model in double precision from the files of a run; loading them runs no code."""
    with tempfile.TemporaryDirectory(prefix="longshift-") as folder:
        for name in FILES:
            (Path(folder) / name).write_bytes(files[name])
        model = load_model(folder, device=device)
    model.predictor.double()
    return model
