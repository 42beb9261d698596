"""Which site `--target` means; does not import PyTorch, so that a wrong name is reported at once."""

from __future__ import annotations

from longshift.data import Manifest
from longshift.errors import UsageError, unknown_name
from longshift.settings import find_target
from longshift.text import some


def held_out_site(manifest: Manifest, target: str) -> str:
    """The site's own name; raise `UsageError` with all names if there is no such site."""
    if not target.strip():
        raise UsageError(f"--target: expected one of {', '.join(manifest.domain_names)}, got an empty name")
    try:
        return find_target(manifest, target)
    except UsageError as error:
        # Someone with four hospitals needs all their names, not only the most similar one.
        hint = unknown_name(f"site of {manifest.name}", target, manifest.domain_names)
        more = "" if "known:" in hint else f" The sites are {some(manifest.domain_names, 20)}."
        raise UsageError(f"--target: {hint}{more}") from error
