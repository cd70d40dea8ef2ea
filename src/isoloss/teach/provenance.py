"""Which code decides a recording's numbers: all that the measuring module imports, hashed as syntax trees.

Imports inside functions count. Docstrings, comments and what describes a setting do not; nor do the modules
behind a border, which carry numbers about without deciding any. A data file counts if its module names it,
alone or in a folder beside the module.
"""

import ast
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

BORDERS = frozenset(
    {
        "isoloss",  # the package's face
        *("isoloss.cli", "isoloss.report", "isoloss.figures"),  # say and draw
        *(
            "isoloss.errors",
            "isoloss.strict",
            "isoloss.files",
            "isoloss.text",
            "isoloss.version",
        ),  # refuse, write
        *("isoloss.teach.panel", "isoloss.teach.prose"),  # carry
        *("isoloss.teach.result", "isoloss.teach.words"),  # carry and check
    }
)
"""A name stands for its module and for all below it, but ``isoloss`` for itself alone."""

WORDS = frozenset({"description", "__all__"})
"""Assignments and keywords that only describe."""


def experiment(*measuring: str, package: Traversable | None = None) -> str:
    """Hash of what decides the numbers of modules such as ``isoloss.teach.amnesia.reach.measure``.

    ``package``: the folder of ``isoloss``; default: the one that is imported.
    """
    digest = hashlib.sha256()
    for name, code, data in closure(*measuring, package=package):
        digest.update(f"{name}\0{code}".encode())
        for content in data:
            digest.update(content)
    return digest.hexdigest()


def closure(*measuring: str, package: Traversable | None = None) -> list[tuple[str, str, list[bytes]]]:
    """Every module reached, by name: its syntax as text, and the content of the data files that it names."""
    package = package or resources.files("isoloss")
    reached: dict[str, tuple[str, str, list[bytes]]] = {}
    waiting = list(measuring)
    while waiting:
        name = waiting.pop()
        if name in reached or _behind_border(name):
            continue
        place = _place(package, name)
        if place is None:
            raise ModuleNotFoundError(f"no module {name} under {package}", name=name)
        folder, file = place
        code, imports, texts = _parse(folder.joinpath(file).read_text("utf-8"))
        reached[name] = name, code, [content for text in texts for content in _data(folder, text)]
        waiting += [inner if _place(package, inner := f"{base}.{leaf}") else base for base, leaf in imports]
    return [reached[name] for name in sorted(reached)]


def _behind_border(name: str) -> bool:
    parts = name.split(".")
    return name in BORDERS or any(".".join(parts[:length]) in BORDERS for length in range(2, len(parts)))


def _place(package: Traversable, name: str) -> tuple[Traversable, str] | None:
    """A module's folder and the name of its file."""
    *rooms, leaf = name.split(".")[1:]
    parent = package.joinpath(*rooms)
    places = ((parent, f"{leaf}.py"), (parent.joinpath(leaf), "__init__.py"))
    return next((place for place in places if leaf and place[0].joinpath(place[1]).is_file()), None)


def _data(folder: Traversable, text: str) -> Iterator[bytes]:
    """The content of the file of that name, or of the files in the folder of that name, however deep."""
    place = folder.joinpath(text)
    if place.is_file():
        yield place.read_bytes()
    elif place.is_dir() and not place.joinpath("__init__.py").is_file():
        for inner in sorted(place.iterdir(), key=lambda inner: inner.name):
            yield from _data(place, inner.name)


@cache
def _parse(source: str) -> tuple[str, frozenset[tuple[str, str]], tuple[str, ...]]:
    """A module's syntax as text; what it imports of isoloss; its texts that may name a file beside it."""
    tree = ast.parse(source)
    imports: set[tuple[str, str]] = set()
    texts: set[str] = set()
    for node in _walk(tree):
        if isinstance(node, ast.Import):
            imports |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imports |= {(node.module or "", alias.name) for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts |= {*re.findall(r"\A\w[\w.-]*\Z", node.value)}
    ours = frozenset(pair for pair in imports if pair[0].split(".")[0] == "isoloss")
    return " ".join(_spell(tree, [])), ours, tuple(sorted(texts))


def _describes(node: Any) -> bool:
    """Does it decide no number: a docstring, or a keyword or an assignment of ``WORDS``?"""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    if isinstance(node, ast.keyword):
        return node.arg in WORDS
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    assigns = isinstance(node, ast.Assign | ast.AnnAssign)
    return assigns and any(isinstance(target, ast.Name) and target.id in WORDS for target in targets)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree that decide."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not _describes(child):
            yield from _walk(child)


def _spell(node: Any, words: list[str]) -> list[str]:
    """A tree as words, without what describes: like ``ast.dump``, but the same in every version of Python."""
    if isinstance(node, ast.AST):
        words.append(f"({type(node).__name__}")
        for name, value in ast.iter_fields(node):
            parts = [part for part in value if not _describes(part)] if isinstance(value, list) else value
            if parts not in (None, []) and name != "kind":
                words.append(name)
                _spell(parts, words)
        words.append(")")
    elif isinstance(node, list):
        for part in node:
            _spell(part, words)
    else:
        words.append(repr(node))
    return words
