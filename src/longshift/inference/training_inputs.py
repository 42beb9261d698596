"""Whether inputs are those that a model was trained on, as far as their paths tell; no file is opened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from longshift.data import DIGITS, vector_file
from longshift.errors import LongshiftError
from longshift.inference.loading import LoadedModel
from longshift.text import agree, counted, some
from longshift.training import RunFolder, read_config


def training_words(model: LoadedModel, files: Sequence[str]) -> str:
    """A warning if files lie where the model's training data were read from; "" if none does.

    In a folder, those below a folder with the name of a training site count. Copies elsewhere are not found.
    """
    try:
        data = read_config(RunFolder(model.folder)).data
    except LongshiftError:  # the model can be used without this file
        return ""
    if data == DIGITS:
        return ""
    root = os.path.realpath(vector_file(data))
    sites: set[str] = set()
    if model.info.vectors:
        if any(os.path.realpath(file) == root for file in files):
            sites.update(model.info.sources)
        what = "this is the file that it was trained on"
    else:
        below = {place: _folders_below(root, place) for place in {os.path.dirname(file) for file in files}}
        found = [own for file in files if (own := below[os.path.dirname(file)].intersection(model.info.sources))]
        sites.update(*found)
        are = agree(len(found), "is", "are")
        what = f"{len(found)} of {counted(len(files), 'image')} {are} in the folder that it was trained on"
    if not sites:
        return ""
    names = [name for name in model.info.sources if name in sites]
    were = agree(len(names), "was a training site", "were training sites")
    return f"{some(names)} {were} of this model, and {what}: expect less at a new site.{held_out_words(model)}"


def held_out_words(model: LoadedModel) -> str:
    """The accuracies at the held-out sites, after a space; "" if the model keeps none."""
    held = model.knowledge.held_out if model.knowledge else ()
    if not held:
        return ""
    listed = some([f"{site.site} {100 * site.accuracy:.0f}%" for site in held])
    return f" Accuracy at sites that were held out: {listed}."


def _folders_below(root: str, folder: str) -> frozenset[str]:
    """The names of the folders from below `root` to a folder; none for a folder elsewhere."""
    place = Path(os.path.realpath(folder))
    return frozenset(place.relative_to(root).parts) if place.is_relative_to(root) else frozenset()
