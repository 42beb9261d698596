"""How much larger than on the disk a file may be in memory."""

from __future__ import annotations

from pathlib import Path

from longshift.errors import LongshiftError

UNPACKED_LIMIT = 1 << 30  # bytes; smaller files may be packed as tightly as they like
PACKING_LIMIT = 100


def refuse_bomb(path: Path, unpacked: int) -> None:
    """Raise if a small file would take a lot of memory; real vectors hardly get smaller when they are packed."""
    if unpacked > UNPACKED_LIMIT and unpacked > PACKING_LIMIT * path.stat().st_size:
        raise LongshiftError(
            f"{path} has {path.stat().st_size / 2**20:.1f} MiB but {unpacked / 2**30:.1f} GiB when unpacked. It was "
            "not read."
        )
