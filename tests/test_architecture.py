"""The layers, stated once: a module imports only from its own layer or lower ones."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: Lowest first. A package belongs to the longest prefix that names it.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("kbn.errors",),
    ("kbn.model",),
    ("kbn.language", "senp", "kbn.knowledge.hierarchy", "datastore.store", "datastore.query"),
    ("kbn.matching",),
    ("kbn.covering", "kbn.temporal"),
    ("kbn.routing",),
    ("kbn.broker",),
    ("datastore", "kbn.knowledge", "kbn.client"),
    ("kbn.server", "datastore.spark"),
    ("kbn.cli", "case_studies", "kbn.__main__"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
#: Importable by everyone: names only, no code of their own.
FREE = {"kbn", "ontologies"}

#: What the pure core never imports: I/O, clocks, randomness, environment.
IMPURE = {
    "asyncio",
    "datetime",
    "io",
    "logging",
    "os",
    "pathlib",
    "random",
    "secrets",
    "selectors",
    "socket",
    "sqlalchemy",
    "sqlite3",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
PURE = ("kbn.errors", "kbn.model", "kbn.matching", "kbn.covering", "senp")
PURE += ("kbn.temporal", "kbn.routing", "kbn.broker", "kbn.knowledge.hierarchy")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative imports hide the layer"
            found.add(node.module)
    return found


def level(module: str) -> int | None:
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        name = ".".join(parts[:end])
        if name in LEVEL:
            return LEVEL[name]
    return None


SOURCES = sorted(
    path for package in ("kbn", "senp", "datastore") for path in (ROOT / package).rglob("*.py")
)


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_a_module_imports_only_from_its_own_layer_or_lower_ones(path: Path) -> None:
    mine = level(module_name(path))
    if module_name(path) in FREE:
        mine = 0
    assert mine is not None, f"{module_name(path)} is in no layer"
    for name in imported(path):
        theirs = level(name)
        if theirs is not None and name not in FREE:
            assert theirs <= mine, f"{module_name(path)} imports {name}, which is above it"


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_the_core_imports_no_clock_no_io_and_no_randomness(path: Path) -> None:
    name = module_name(path)
    if any(name == pure or name.startswith(pure + ".") for pure in PURE):
        roots = {module.split(".")[0] for module in imported(path)}
        assert not roots & IMPURE, f"{name} is pure and imports {roots & IMPURE}"
