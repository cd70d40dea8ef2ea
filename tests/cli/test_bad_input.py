"""Bad input of commands that train: exit code 2, the place named, nothing written."""

import pytest

from isoloss import cli
from isoloss.errors import InputError, Refusal

RUN = ["run", "my.toml"]
BAD = [
    (["run", "nothing"], "there is no study 'nothing'"),
    (["run", "../../etc/passwd.toml"], "there is no study"),
    (["run", "/etc"], "there is no study"),
    (["run"], "Missing argument"),
    (["walk"], "No such command 'walk'"),
    ([*RUN, "--scale", "huge"], "has no scale 'huge'"),
    ([*RUN, "--engine", "cloud"], "there is no engine 'cloud'"),
    ([*RUN, "--engine-set", "cpus=1"], "the local engine has no settings"),
    ([*RUN, "--gpu", "h100"], "--gpu only costs a plan"),
    ([*RUN, "--dry-run", "--gpu", "abacus"], "no accelerator is named 'abacus'"),
    (["status", "."], "holds no study"),
    ([*RUN, "--workers", "0"], "--workers"),
    ([*RUN, "--workers", "many"], "--workers"),
    ([*RUN, "--nonsense"], "No such option"),
    ([*RUN, "--set", "context"], "'context' is not KEY=VALUE"),
    ([*RUN, "--set", "contxt=3"], "--set: unknown key 'contxt'; did you mean 'context'?"),
    ([*RUN, "--set", "seed=3"], "--set: unknown key 'seed'; did you mean 'seeds'?"),
    (
        ["run", "nameless.toml"],
        "nameless.toml: the key 'name' is missing To mend it: a study begins with name =",
    ),
    ([*RUN, "--set", "context=wide"], "--set: context: Input should be a valid integer"),
    ([*RUN, "--set", "corpus=nowhere"], "there is no corpus 'nowhere'"),
    ([*RUN, "--set", "corpus=../x"], "not a usable corpus name"),
    ([*RUN, "--set", "vocabulary=50000"], "too large for the text"),
    ([*RUN, "--set", "context=70000", "--set", "tokens=[2800000]"], "too few for"),
    ([*RUN, "--set", "tokens=[641]"], "tokens 641 is not a multiple"),
    ([*RUN, "--set", "tokens=[64]"], "give it at least 10"),
    ([*RUN, "--set", "device=tpu"], "'tpu' is not a device"),
    ([*RUN, "--set", "tokenizer=my.toml"], "my.toml: is not a readable tokenizer.json"),
    ([*RUN, "--family", "nowhere.py"], "nowhere.py: no such file"),
    ([*RUN, "--family", "my.toml"], "my.toml"),
    ([*RUN, "--family", "empty.py"], "registers no family"),
    ([*RUN, "--out", "my.toml"], "my.toml: is not a folder"),
    ([*RUN, "--out", "s3://bucket/study"], "--out s3:/bucket/study: is an address, not a folder"),
    ([*RUN, "--set", f"seeds={'[' * 5000}"], "--set: seeds: Input should be a valid list"),
    (["run", "broken.toml"], "broken.toml: is not TOML"),
    (["run", "deep.toml"], "deep.toml: is not TOML"),
    (["run", "bytes.toml"], "bytes.toml, line 1: is not UTF-8"),
    (["run", "typo.toml"], "typo.toml: unknown key 'scale.mini.contxt'; did you mean 'context'?"),
    (["run", "hostile.toml"], "hostile.toml: name: String should match pattern"),
    (["report", "."], "holds no study"),
    (["report", "nowhere"], "holds no study"),
    (["corpus", "add", "../x", "text.txt"], "not a usable corpus name"),
    (["corpus", "add", "starter", "text.txt"], "comes with isoloss"),
    (["corpus", "add", "mine", "nowhere.txt"], "nowhere.txt"),
    (["corpus", "add", "mine", "bytes.toml"], "bytes.toml"),
    (["corpus", "add", "mine", "empty.py"], "empty"),
    (["corpus", "tokenize", "nowhere"], "there is no corpus 'nowhere'"),
    (["corpus", "tokenize", "tiny", "--vocabulary", "256"], "no room for the 256 bytes"),
    (["corpus", "tokenize", "tiny", "--vocabulary", "60000"], "too large for the text"),
]


@pytest.fixture
def tree(here):
    """tree() -> every path under the folder we stand in, with its bytes; Python's own of imports apart."""
    return lambda: {
        path: path.read_bytes() if path.is_file() else None
        for path in here.rglob("*")
        if "__pycache__" not in path.parts
    }


@pytest.fixture
def bad_files(here, study_text):
    (here / "my.toml").write_text(study_text)
    (here / "nameless.toml").write_text(study_text.replace('name = "tiny-study"', ""))
    (here / "broken.toml").write_text("name = \n")
    (here / "deep.toml").write_text(f"name = {'[' * 5000}\n")
    (here / "bytes.toml").write_bytes(b"name = '\xff'\n")
    (here / "typo.toml").write_text(study_text.replace("context = 16", "context = 16\ncontxt = 16"))
    (here / "hostile.toml").write_text(study_text.replace("tiny-study", "../../<script>"))
    (here / "text.txt").write_text("one document\n")
    (here / "empty.py").write_text("")


@pytest.mark.usefixtures("bad_files")
@pytest.mark.parametrize(
    ("arguments", "what"), BAD, ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else ""
)
def test_bad_input_is_exit_code_2_and_leaves_nothing(isoloss, tiny, tree, isoloss_home, arguments, what):
    before = tree()
    corpora = sorted(path.name for path in (isoloss_home / "corpora").iterdir() if path.name[0] != ".")
    code, out, err = isoloss(*arguments)
    assert code == 2, err
    assert what in " ".join(err.replace("│", " ").split()), err
    assert out == ""
    assert "Traceback" not in err
    assert tree() == before
    assert (
        sorted(path.name for path in (isoloss_home / "corpora").iterdir() if path.name[0] != ".") == corpora
    )


@pytest.mark.usefixtures("bad_files")
def test_control_the_same_file_without_fault_is_exit_code_0(isoloss, tiny):
    assert isoloss("run", "my.toml", "--dry-run")[0] == 0


def test_every_error_has_its_exit_code(isoloss, monkeypatch):
    for error, code in (
        (InputError("x"), 2),
        (Refusal("x", mend="y"), 3),
        (PermissionError(13, "denied", "f"), 1),
    ):

        def fail(words, error=error):
            raise error

        monkeypatch.setattr(cli, "run", fail)
        result = isoloss()
        assert result[0] == code
        assert result[2].startswith("isoloss: ")
    assert result[2] == "isoloss: f: denied\n"
