"""Takes pages that lie beside ``docs/`` into the site: the case studies and the ontologies.

MkDocs calls the two functions. In the site these pages stand at its root, so that a link
that leaves ``docs/`` for one of them leaves it no more; one that comes back goes to the root.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FOLDERS = ("case_studies", "ontologies")


def beside() -> list[str]:
    """Pages and pictures that are taken in, by their paths in the repository."""
    found = [
        path
        for folder in FOLDERS
        for pattern in ("README.md", "*/README.md", "*/*.svg")
        for path in (ROOT / folder).glob(pattern)
    ]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def linked(markdown: str, page: str) -> str:
    """The text of a page with its links as they lead within the site."""
    up = "../" * page.count("/")
    if page.startswith(FOLDERS):
        return markdown.replace(f"]({up}docs/", f"]({up}")
    for folder in FOLDERS:
        markdown = markdown.replace(f"](../{up}{folder}/", f"]({up}{folder}/")
    return markdown


def on_files(files: Any, *, config: Any) -> Any:
    """Called by MkDocs when it has found the files of ``docs/``."""
    from mkdocs.structure.files import File  # noqa: PLC0415  only there where the site is built

    for name in beside():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called by MkDocs for each page before it is rendered."""
    return linked(markdown, page.file.src_uri)
