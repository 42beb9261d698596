"""Make the links of a page absolute, so that they work on the package index:

    python tools/absolute_links.py README.md https://github.com/OWNER/NAME v1.2.3

The release workflow does this before it builds. In the repository, links stay relative: they work in every copy.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<path>[^)\s]+)\)")


def absolute_links(text: str, repository: str, ref: str) -> str:
    """The page with links to files of the repository at a tag or branch.

    Args:
        text: Markdown.
        repository: Address of the repository.
        ref: Tag or branch.

    Returns:
        The page. Pictures point at the files themselves, other links at their pages.
    """

    def change(found: re.Match[str]) -> str:
        path = found["path"]
        if re.match(r"[a-z]+:|#|/", path):
            return found[0]
        place = _raw(repository, ref) if found["picture"] else f"{repository}/blob/{ref}"
        return f"{found['picture']}[{found['text']}]({place}/{path})"

    return LINK.sub(change, text)


def _raw(repository: str, ref: str) -> str:
    """Where the files of a repository are served as they are."""
    host = "https://github.com/"
    if repository.startswith(host):
        return f"https://raw.githubusercontent.com/{repository.removeprefix(host)}/{ref}"
    return f"{repository}/raw/{ref}"


def main() -> None:
    """Change the file."""
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    file, repository, ref = sys.argv[1:]
    text = Path(file).read_text(encoding="utf-8")
    Path(file).write_text(absolute_links(text, repository.rstrip("/"), ref), encoding="utf-8")


if __name__ == "__main__":
    main()
