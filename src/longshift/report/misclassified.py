"""Misclassified samples, from a run's kept predictions and its dataset; images as small data URIs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from longshift.data import BadImage, Manifest, decode, load_dataset, open_source, open_store
from longshift.errors import LongshiftError
from longshift.metrics import probabilities
from longshift.report.run_records import Record
from longshift.report.thumbnails import thumbnail


@dataclass(frozen=True)
class Misclassified:
    """A misclassified sample."""

    index: int  # in the manifest
    true: str
    predicted: str
    confidence: float  # calibrated, as in the output of `longshift predict`
    domain: str


def misclassified_samples(record: Record, manifest: Manifest) -> list[Misclassified]:
    """Return the misclassified samples of the target, most confident first; an error if the dataset is not the run's.

    Confidence is calibrated on the run's validation set, as the probabilities of a model are.
    """
    found = record.predictions()
    if found is None or "target_logits" not in found:
        raise LongshiftError("the run kept no predictions")
    indices, labels = found["target_indices"], found["target_labels"]
    if len(indices) and (
        int(indices.max()) >= len(manifest)
        or not np.array_equal(manifest.labels[indices], labels)
        or list(manifest.classes) != record.classes
    ):
        raise LongshiftError(f"the dataset {manifest.name} has changed since the run")
    shares = probabilities(found["target_logits"], temperature=record.temperature(found))
    predicted, sure = shares.argmax(axis=1), shares.max(axis=1)
    return [
        Misclassified(
            int(indices[i]), manifest.classes[int(labels[i])], manifest.classes[int(predicted[i])], float(sure[i]),
            manifest.domain_names[int(manifest.domains[indices[i]])],
        )
        for i in np.argsort(-sure, kind="stable")
        if predicted[i] != labels[i]
    ]  # fmt: skip


def load_manifest(data: str) -> Manifest:
    """The dataset of a run; an error that fits into a sentence if it is not there."""
    try:
        return load_dataset(data)
    except LongshiftError as error:
        raise LongshiftError(f"the images of {data} are not there ({str(error).splitlines()[0]})") from error


def pictures(samples: Sequence[Misclassified], manifest: Manifest) -> list[tuple[str, str, Misclassified]]:
    """Thumbnail as a data URI ("" for vectors), name and sample; images that cannot be read are left out."""
    made = []
    if manifest.vectors:
        return [("", manifest.paths[sample.index], sample) for sample in samples]
    if manifest.root is None:
        pixels = open_store(manifest, 32).inputs
        thumbnails = [thumbnail(Image.fromarray(pixels[sample.index])) for sample in samples]
        return [(uri, manifest.paths[sample.index], sample) for uri, sample in zip(thumbnails, samples, strict=True)]
    with open_source(manifest) as source:
        for sample in samples:
            name = manifest.paths[sample.index]
            try:
                made.append((thumbnail(decode(source.read(name))), name, sample))
            except BadImage:
                continue
    return made
