"""Loading data runs no code, and one module writes: both read off the source itself."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "isoloss"
MODULES = sorted(SOURCE.rglob("*.py"))

# What runs code that came as data: exec() and eval(), not model.eval() or exec_module.
FORBIDDEN = {
    "pickle": r"\b(c?pickle|dill|cloudpickle|joblib|marshal|shelve)\b",
    "yaml": r"(?<![\w.])yaml\b|\bruamel\b",  # the module, not the ending of a file's name
    "eval": r"(?<![\w.])eval\(",
    "exec": r"(?<![\w.])exec\(",
    "compile": r"(?<![\w.])compile\(",
    "torch.load": r"torch\.(load|save|hub)\b",
    "allow_pickle": r"allow_pickle\s*=\s*True",
    "shell": r"shell\s*=\s*True|os\.(system|popen)\(",
    "__import__": r"__import__\(",
    "trust_remote_code": r"trust_remote_code\s*=\s*True",
    "archives": r"\b(tarfile|zipfile|shutil\.unpack_archive)\b",
}


def uses(kind: str, text: str) -> bool:
    return re.search(FORBIDDEN[kind], text) is not None


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_nothing_in_the_package_runs_code_from_data(kind):
    paths = [str(path.relative_to(SOURCE)) for path in MODULES if uses(kind, path.read_text("utf-8"))]
    assert paths == []


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("pickle", "import pickle"),
        ("yaml", "yaml.safe_load(text)"),
        ("eval", "x = eval(text)"),
        ("exec", "exec(text)"),
        ("compile", "compile(text, '', 'exec')"),
        ("torch.load", "torch.load(path)"),
        ("allow_pickle", "np.load(path, allow_pickle=True)"),
        ("shell", "subprocess.run(command, shell=True)"),
        ("__import__", "__import__(name)"),
        ("trust_remote_code", "load_dataset(name, trust_remote_code=True)"),
        ("archives", "import tarfile"),
    ],
)
def test_control_each_kind_is_found(kind, line):
    assert uses(kind, line)
    assert not uses(kind, "model.eval(); spec.loader.exec_module(module); re.compile(pattern)")


def test_a_users_file_is_run_in_one_place_only():
    paths = [
        path.relative_to(SOURCE).as_posix() for path in MODULES if "exec_module" in path.read_text("utf-8")
    ]
    assert paths == ["models/registry.py"]


# Writing: calls that create, change or delete files, by the name they are called by.
WRITING = {
    "write_text", "write_bytes", "touch", "mkdir", "makedirs", "unlink", "rmdir", "removedirs", "rmtree",
    "symlink_to", "hardlink_to", "link_to", "rename", "renames", "chmod", "truncate", "ftruncate",
    "copy2", "copyfile", "copytree", "copyfileobj", "move", "mkstemp", "mkdtemp", "NamedTemporaryFile",
    "TemporaryDirectory", "TemporaryFile", "write_parquet", "write_csv", "write_ndjson", "write_ipc",
    "write_excel", "sink_parquet", "sink_csv", "to_csv", "to_parquet", "savez", "savez_compressed", "savetxt",
    "tofile", "save_file", "save_model", "save_pretrained", "savefig",
}  # fmt: skip
# Names too common to forbid by themselves, with the modules that they write in.
WRITING_OF = {
    "os": {"open", "write", "replace", "remove", "link", "symlink"},
    "np": {"save"},
    "shutil": {"copy"},
}


def writes(text: str) -> list[str]:
    """The calls in ``text`` that write, other than through ``files``, as 'name' each."""
    return [
        name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and (name := written(node))
    ]


def written(call: ast.Call) -> str | None:
    function = call.func
    if isinstance(function, ast.Name):
        name, owner = function.id, None
    elif isinstance(function, ast.Attribute):
        name, owner = function.attr, getattr(function.value, "id", None)
    else:
        return None
    if owner == "files":
        return None
    if name == "open" and owner != "os":
        position = 1 if isinstance(function, ast.Name) else 0
        mode = next((k.value for k in call.keywords if k.arg == "mode"), None)
        mode = mode or (call.args[position] if len(call.args) > position else None)
        reads = mode is None or (isinstance(mode, ast.Constant) and not set(str(mode.value)) & set("wax+"))
        return None if reads else name
    if name == "memmap":
        reads = any(k.arg == "mode" and getattr(k.value, "value", "") == "r" for k in call.keywords)
        return None if reads else name
    if name == "write_csv" and not call.args:  # returns the text
        return None
    if name == "rename" and any(
        isinstance(argument, ast.Dict) for argument in call.args
    ):  # columns of a table
        return None
    if name in WRITING or name in WRITING_OF.get(owner, ()):
        return name
    return None


# Everything outside files.py that the search finds, each harmless for the reason given.
ALLOWED = {
    ("training/checkpoint.py", "save_file"): "writes the temporary path that files.replace_file hands it",
    ("studies/engines/worker.py", "mkdir"): "makes an empty run folder",
    ("cli/__init__.py", "open"): "the null device in place of a pipe that nobody reads any more",
    ("bench/report.py", "TemporaryDirectory"): "removed with all that a benchmark puts there",
    ("bench/runs.py", "TemporaryDirectory"): "removed with all that a benchmark puts there",
    ("training/finish.py", "write_parquet"): "the function of records/store.py",
}


def test_only_one_module_writes():
    calls = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in MODULES
        for name in writes(path.read_text("utf-8"))
        if path != SOURCE / "files.py"
    }
    assert calls - ALLOWED.keys() == set(), "write through isoloss.files"
    assert ALLOWED.keys() - calls == set(), "these are no longer needed: take them off the list"


@pytest.mark.parametrize(
    "line",
    [
        "open(path, 'w')",
        "open(path, mode='ab')",
        "open(path, 'r+')",
        "open(path, how)",
        "path.open('x')",
        "path.write_text(text)",
        "os.open(path, flags)",
        "os.replace(a, b)",
        "shutil.rmtree(folder)",
        "path.unlink()",
        "table.write_csv(path)",
        "np.save(path, x)",
        "np.memmap(path, mode='w+')",
        "tempfile.mkstemp()",
    ],
)
def test_control_each_way_to_write_is_found(line):
    assert writes(line)


@pytest.mark.parametrize(
    "line",
    [
        "open(path)",
        "open(path, 'rb')",
        "path.open('r')",
        "text.replace('a', 'b')",
        "files.write_text(path, text)",
        "np.memmap(path, mode='r')",
        "sys.stdout.write(text)",
        "table.write_csv(separator=';')",
        "table.rename({'a': 'b'})",
    ],
)
def test_control_reading_is_not(line):
    assert not writes(line)
