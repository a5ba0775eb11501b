"""The shape of the code: which layer may import which, and what the pure layers must not know."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

PACKAGE = Path(__file__).parent.parent / "mailgateway"

BASE = frozenset({"contract", "errors", "ids", "settings", "secrets", "providers", "__init__"})

MAY_IMPORT: dict[str, frozenset[str]] = {
    "mail": frozenset(),
    "wire": frozenset(),
    "shapes": frozenset(),
    "domain": frozenset({"mail"}),
    "protocols": frozenset({"wire"}),
    "store": frozenset({"domain"}),
    "flows": frozenset({"mail", "domain", "store"}),
    "daemons": frozenset({"mail", "domain", "flows", "protocols", "wire"}),
    "http": frozenset({"domain", "flows", "shapes"}),
    "client": frozenset({"shapes"}),
    "agents": frozenset({"domain", "client", "shapes"}),
    "mcp": frozenset({"agents", "client", "shapes"}),
    "operator": frozenset({"mail", "wire", "domain", "protocols", "client", "shapes"}),
    "demo": frozenset({"mail", "protocols", "client"}),
    "cli": frozenset({"client", "shapes", "agents", "operator", "demo", "mcp"}),
    "service": frozenset(
        {"mail", "wire", "domain", "protocols", "store", "flows", "daemons", "http", "shapes", "client"}
    ),
}
"""Layer -> the layers it may import, beside itself and the base, which are open to all."""

PURE = frozenset({"mail", "wire", "domain", "shapes"})
"""Layers that are functions of their arguments: no reactor, no database."""

WITH_TWISTED = frozenset({"OpenSSL", "zope"})
"""What ``twisted[tls]`` brings along and speaks of in its own interfaces."""

LAZY_ONLY = {"cli": frozenset({"operator", "demo", "mcp"})}
"""Layers that may be imported inside a function only, since they cost a start that others should not pay."""

NO_TWISTED = PURE | {"client"}

OUTSIDE = frozenset({"os", "random", "secrets", "socket", "subprocess", "threading", "time", "uuid"})
"""Modules by which a function comes to know more than its arguments."""


def layer_of(path: Path) -> str:
    """The layer that a file of the package belongs to."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Each imported module's dotted name, and whether the import stands at the top level of the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            if node.module == "mailgateway":
                for alias in node.names:
                    module = any(PACKAGE.glob(f"{alias.name}.py")) or (PACKAGE / alias.name).is_dir()
                    yield f"mailgateway.{alias.name if module else '__init__'}", id(node) in top
            else:
                yield node.module, id(node) in top


def modules() -> Iterator[Path]:
    """Every Python file of the package, migration scripts included."""
    return (path for path in sorted(PACKAGE.rglob("*.py")) if "__pycache__" not in path.parts)


class ArchitectureTests(SynchronousTestCase):
    """Imports go one way, and nobody adds a layer unnoticed."""

    def test_every_module_belongs_to_a_known_layer(self) -> None:
        """A new top-level name is a decision about the architecture and has to be made here."""
        unknown = {layer_of(path) for path in modules()} - BASE - set(MAY_IMPORT)
        self.assertEqual(unknown, set())

    def test_imports_go_one_way(self) -> None:
        """No layer reaches into one that lies above or beside it."""
        wrong = []
        for path in modules():
            layer = layer_of(path)
            for name, top in imports(path):
                if not name.startswith("mailgateway."):
                    continue
                target = name.split(".")[1]
                allowed = BASE if layer in BASE else BASE | {layer} | MAY_IMPORT[layer]
                lazy = target in LAZY_ONLY.get(layer, frozenset())
                if target not in allowed or (lazy and top):
                    wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
        self.assertEqual(wrong, [])

    def test_pure_layers_know_neither_reactor_nor_database(self) -> None:
        """What decides can be tested without a server, and cannot block one."""
        wrong = [
            f"{path.relative_to(PACKAGE)} imports {name}"
            for path in modules()
            for name, _ in imports(path)
            if (
                (layer_of(path) in NO_TWISTED and name.split(".")[0] == "twisted")
                or (layer_of(path) in PURE | {"client"} and name.split(".")[0] in {"sqlalchemy", "alembic"})
                or name.split(".")[0] == "asyncio"
            )
        ]
        self.assertEqual(wrong, [])

    def test_pure_layers_read_no_clock_and_draw_no_chance(self) -> None:
        """Time and random bytes are arguments, so the same mail is judged in the same way tomorrow."""
        wrong = []
        for path in modules():
            if layer_of(path) not in PURE:
                continue
            wrong += [
                f"{path.relative_to(PACKAGE)} imports {name}" for name, _ in imports(path) if name in OUTSIDE
            ]
            wrong += [
                f"{path.relative_to(PACKAGE)}:{node.lineno} asks {ast.unparse(node.func)}"
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in {"now", "utcnow", "today"}
            ]
        self.assertEqual(wrong, [])

    def test_what_is_imported_is_declared_and_nothing_else(self) -> None:
        """An installation has all that the code needs, and nobody installs what it does not."""
        project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        named = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
        declared = {found[0] for each in named if (found := re.match(r"[\w-]+", each)) is not None}
        known = packages_distributions()
        modules_used = {name.split(".")[0] for path in modules() for name, _ in imports(path)}
        foreign = modules_used - sys.stdlib_module_names - WITH_TWISTED - {"mailgateway"}
        used = {known[each][0].lower().replace("_", "-") for each in foreign}
        self.assertEqual(used, declared)

    def test_sql_lives_in_the_store(self) -> None:
        """Only the store speaks SQL, so that there is one place to look when a row is wrong."""
        wrong = [
            f"{path.relative_to(PACKAGE)} imports {name}"
            for path in modules()
            for name, _ in imports(path)
            if name.split(".")[0] in {"sqlalchemy", "alembic", "sqlite3", "psycopg"}
            and layer_of(path) != "store"
        ]
        self.assertEqual(wrong, [])

    def test_nobody_imports_the_global_reactor_at_import_time(self) -> None:
        """Importing any module has no side effect; the reactor is chosen by whoever runs us."""
        wrong = []
        for path in modules():
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ImportFrom) and node.module == "twisted.internet":
                    wrong += [str(path) for alias in node.names if alias.name == "reactor"]
        self.assertEqual(wrong, [])

    def test_no_foreign_words_are_logged(self) -> None:
        """An exception's text may quote a person's mail: a failure is logged as a ``Fault``, by its place."""
        wrong = []
        for path in modules():
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr == "failure"
                    and "log" in ast.unparse(node.func.value)
                ):
                    given = [ast.unparse(each.value) for each in node.keywords if each.arg == "failure"]
                    if not given or not re.search(r"Fault\(|fault", given[0]):
                        wrong.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
        self.assertEqual(wrong, [])
