"""Whether a file can be downloaded, found out within seconds."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

WAIT = 3.0  # seconds


def download_obstacle(url: str) -> str:
    """Why a file that torch.hub downloads is not available; empty if it is."""
    import torch

    cached = Path(torch.hub.get_dir()) / "checkpoints" / Path(urlsplit(url).path).name
    return "" if cached.exists() else unreachable(url)


def unreachable(url: str) -> str:
    """Why a host cannot be reached; empty if it answers, or behind a proxy, where only a download can tell."""
    parts = urlsplit(url)
    secure = parts.scheme != "http"
    proxy = "HTTPS_PROXY" if secure else "HTTP_PROXY"
    if os.environ.get(proxy) or os.environ.get(proxy.lower()):
        return ""
    try:
        with socket.create_connection((parts.hostname or "", parts.port or (443 if secure else 80)), timeout=WAIT):
            return ""
    except OSError:
        return f"they are not in the local cache, and {parts.hostname} does not answer"
