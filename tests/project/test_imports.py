"""Imports go one way, and nothing that is loaded can run code: read from the source itself, without running it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
FILES = sorted(SOURCE.rglob("*.py"))

# What each package may import of ours, besides its own modules.
ALLOWED = {
    "text": ["insnet.randomness", "insnet.files"],
    "insertion": ["insnet.randomness"],
    "layers": ["insnet.randomness"],
    "evaluation": ["insnet.devices", "insnet.randomness", "insnet.files", "insnet.text", "insnet.model"],
    "drafts": ["insnet.text", "insnet.decoding.request", "insnet.model"],
    "families": ["insnet.randomness", "insnet.files", "insnet.text", "insnet.insertion", "insnet.layers"],
}
FAMILY_MODULES_THE_LOOPS_MAY_SEE = {
    "insnet.families",
    "insnet.families.adapters",
    "insnet.families.generator",
    "insnet.families.losses",
    "insnet.families.offers",
    "insnet.families.storage",
}
MODULES_THAT_UNPICKLE = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in FILES}


def imported_modules(tree: ast.AST, package: str) -> Iterator[str]:
    """The full name of every imported module, wherever in the file; `package` is what relative imports start from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            anchor = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*anchor, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{origin}.{alias.name}"
                yield submodule if submodule in MODULES else origin


def imports_of(path: Path) -> set[str]:
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return set(imported_modules(ast.parse(path.read_text(encoding="utf-8")), package))


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def unsafe_loads(tree: ast.AST) -> Iterator[str]:
    """What in the file could execute code while it loads data."""
    for module in imported_modules(tree, "insnet"):
        if module.split(".")[0] in MODULES_THAT_UNPICKLE:
            yield f"imports {module}"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "torch" and "load" in {a.name for a in node.names}:
            yield "imports torch.load"
        if isinstance(node, ast.Call):
            if ast.unparse(node.func) in ("torch.load", "torch.serialization.load"):
                yield "calls torch.load"
            for keyword in node.keywords:
                if keyword.arg == "allow_pickle" and ast.unparse(keyword.value) != "False":
                    yield "passes allow_pickle"


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_only_what_lies_below_it(package):
    allowed = [f"insnet.{package}", *ALLOWED[package]]
    wrong = [
        f"{path.relative_to(SOURCE)} imports {module}"
        for path in sorted((SOURCE / "insnet" / package).rglob("*.py"))
        for module in sorted(imports_of(path))
        if is_within(module, "insnet") and not any(is_within(module, name) for name in allowed)
    ]
    assert wrong == []


@pytest.mark.parametrize("package", ["training", "decoding"])
def test_the_loops_see_families_only_through_their_contract(package):
    wrong = [
        f"{path.relative_to(SOURCE)} imports {module}"
        for path in sorted((SOURCE / "insnet" / package).rglob("*.py"))
        for module in sorted(imports_of(path))
        if is_within(module, "insnet.families") and module not in FAMILY_MODULES_THE_LOOPS_MAY_SEE
    ]
    assert wrong == []


def test_only_the_entry_point_imports_the_command_line():
    importers = {module_name(path) for path in FILES if any(is_within(name, "insnet.cli") for name in imports_of(path))}
    assert {name for name in importers if name != "insnet.__main__" and not is_within(name, "insnet.cli")} == set()


def test_no_pickle_is_ever_loaded():
    wrong = [
        f"{path.relative_to(SOURCE)} {finding}"
        for path in FILES
        for finding in unsafe_loads(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "module"),
    [
        ("import insnet.randomness", "insnet.randomness"),
        ("from insnet import randomness", "insnet.randomness"),
        ("from insnet.randomness import mix", "insnet.randomness"),
        ("def f():\n    from .. import randomness", "insnet.randomness"),
        ("from ..randomness import mix", "insnet.randomness"),
        ("from .order import draw", "insnet.insertion.order"),
    ],
)
def test_the_check_sees_every_way_to_import(code, module):
    assert list(imported_modules(ast.parse(code), "insnet.insertion")) == [module]


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "torch.load(p)",
        "from torch import load",
        "np.load(p, allow_pickle=True)",
    ],
)
def test_the_check_sees_every_unsafe_load(code):
    assert list(unsafe_loads(ast.parse(code)))


def test_the_check_lets_safe_loads_pass():
    assert list(unsafe_loads(ast.parse("np.load(p, allow_pickle=False)\njson.load(f)\nload_file(p)"))) == []
