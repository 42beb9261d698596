"""On the package index, the README shows its picture and its links lead to the repository."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools.absolute_links import absolute_links

ROOT = Path(__file__).parents[2]
GITHUB = "https://github.com/someone/longshift"


def test_pictures_links_and_what_stays() -> None:
    page = "![a](docs/a.png) [b](docs/b.md#c) [d](#e) [f](https://g.org/h) `[i](j)`"
    assert absolute_links(page, GITHUB, "v1") == (
        "![a](https://raw.githubusercontent.com/someone/longshift/v1/docs/a.png) "
        f"[b]({GITHUB}/blob/v1/docs/b.md#c) [d](#e) [f](https://g.org/h) `[i]({GITHUB}/blob/v1/j)`"
    )
    elsewhere = absolute_links("![a](a.png)", "https://git.example.org/x", "v1")
    assert elsewhere == "![a](https://git.example.org/x/raw/v1/a.png)"


def test_the_readme_has_no_relative_link_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_bytes((ROOT / "README.md").read_bytes())
    subprocess.run([sys.executable, ROOT / "tools" / "absolute_links.py", file, GITHUB, "v1"], check=True)
    text = file.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert links
    assert all(link.startswith("https://") for link in links)
    for path in re.findall(rf"{GITHUB}/blob/v1/([^)#]+)|githubusercontent.com/someone/longshift/v1/([^)]+)", text):
        assert (ROOT / "".join(path)).exists()
