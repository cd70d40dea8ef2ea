"""Long texts are cut where no token can reach over: the parts have the ids of the whole."""

import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from isoloss.corpus import cuts, library, tokenizer
from isoloss.corpus.tokenizer import encode, tokenizer_hash, train_tokenizer
from isoloss.errors import InputError

CHINESE = "".join(random.Random(0).choices("\u4e00\u4e8c\u5929\u5730\u4eba\u65e5\u6708\u6c34", k=3000))
KINDS = {
    "English": "The cat's hat, it said, wasn't there; 12 of 3,400 had one. " * 60,
    "Chinese": "\u3002".join(CHINESE[at : at + 3 + at % 9] for at in range(0, len(CHINESE), 7)),
    "a word a line": "\n".join(random.Random(1).choices(["cat", "hat", "said", "there"], k=900)),
    "numbers a line": "\n".join(str(number * number) for number in range(900)),
    "tab-separated": "a\t12\tcat\n" * 300,
    "base64": "".join(random.Random(2).choices("ABCDEFabcdefwxyz0123456789+/", k=3000)),
    "JSON": '{"cat":12,"hat":[1,2.5,null]}' * 100,
    "code": "def f(x):\n\n    return x_1 + it's(2)\n\n\n" * 80,
}
PIECES = [
    *" \n\t\u3000\u00a0'.,;-_\u3002\uff0c\u300c0125",
    "ab",
    "s",
    "t",
    "ve",
    "\u4e00\u5929",
    "\u304b",
    "\ud55c",
    "e\u0301",
    "\xb2",
    "\xe9",
    "\U0001f600",
    "\u0e01\u0e34",
    "\U00031350",
]
ANY_TEXT = st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=60
)

CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
WORDS = {
    "gpt2": [pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "digits": [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "cl100k": [pre_tokenizers.Split(Regex(CL100K), "isolated")],
    "o200k": [pre_tokenizers.Split(Regex(O200K), "isolated")],
    "lines": [pre_tokenizers.Split("\n", "isolated")],
    "whole texts": [],
}


@pytest.fixture(scope="module", params=WORDS)
def any_tokenizer(request):
    """A tokenizer whose words are those of the name, trained on all kinds of text, with an added token."""
    made = Tokenizer(models.BPE())
    steps = WORDS[request.param]
    plain = [] if request.param in ("gpt2", "digits") else [pre_tokenizers.ByteLevel(False, use_regex=False)]
    made.pre_tokenizer = pre_tokenizers.Sequence([*steps, *plain])
    made.decoder = decoders.ByteLevel()
    texts = [part[:400] for part in KINDS.values()]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    made.add_tokens(["ab ab", "s\n", AddedToken("ve,", single_word=True)])
    made.encode_special_tokens = True
    return made


def ids(tokenizer, text, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuts, "PART_CHARACTERS", size)
        return encode(tokenizer, [text]).tolist()


@settings(max_examples=150)
@example("cat 1ve, there", 4)
@given(ANY_TEXT, st.integers(1, 12))
def test_parts_have_the_ids_of_the_whole(any_tokenizer, text, size):
    assert ids(any_tokenizer, text, size) == ids(any_tokenizer, text, 10**9)


@pytest.mark.parametrize("kind", KINDS)
def test_text_of_every_kind_is_cut_and_keeps_its_ids(any_tokenizer, kind):
    assert ids(any_tokenizer, KINDS[kind], 100) == ids(any_tokenizer, KINDS[kind], 10**9)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_short_and_make_up_the_text(kind, monkeypatch):
    monkeypatch.setattr(cuts, "PART_CHARACTERS", 50)
    parts = list(cuts.parts_of(KINDS[kind]))
    assert "".join(parts) == KINDS[kind]
    assert max(map(len, parts)) < 100
    assert list(cuts.parts_of("")) == [""]


def words_of(text):
    return [word for word, _ in pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)]


def words_of_parts(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuts, "PART_CHARACTERS", 1)
        return [word for part in cuts.parts_of(text) for word in words_of(part)]


@settings(max_examples=500)
@example("it's 1\u30002\u3002\n\n\u4e00,ab1's")
@given(ANY_TEXT)
def test_a_tokenizer_is_trained_on_the_words_of_the_whole(text):
    """At every place, without asking a tokenizer that is not there yet."""
    assert words_of_parts(text) == words_of(text)


def test_control_a_cut_at_any_other_place_changes_words(monkeypatch):
    monkeypatch.setattr(cuts, "_PLACE", re.compile(r"'(?=s)"))
    assert words_of_parts("it's") != words_of("it's")
    monkeypatch.setattr(cuts, "_PLACE", re.compile(r"[ \n](?=\w)"))
    assert words_of_parts("a b") != words_of("a b")


@pytest.mark.parametrize("kind", ["English", "Chinese"])
def test_control_parts_that_end_anywhere_have_other_ids(any_tokenizer, kind, monkeypatch):
    monkeypatch.setattr(cuts, "_PLACE", re.compile("(?s)."))
    assert ids(any_tokenizer, KINDS[kind], 7) == ids(any_tokenizer, KINDS[kind], 10**9), "asked"
    monkeypatch.setattr(tokenizer, "_ends_word", lambda *_: True)
    assert ids(any_tokenizer, KINDS[kind], 7) != ids(any_tokenizer, KINDS[kind], 10**9)


def test_control_a_tokenizer_of_words_with_spaces_must_be_asked(any_tokenizer, monkeypatch):
    """The added token "ab ab" has a space between two words inside."""
    text = "ab ab ab. " * 30
    assert ids(any_tokenizer, text, 5) == ids(any_tokenizer, text, 10**9)
    monkeypatch.setattr(tokenizer, "_ends_word", lambda *_: True)
    assert ids(any_tokenizer, text, 5) != ids(any_tokenizer, text, 10**9)


def test_a_text_without_places_stays_whole(monkeypatch):
    monkeypatch.setattr(cuts, "PART_CHARACTERS", 5)
    assert list(cuts.parts_of("x" * 100)) == ["x" * 100]
    assert list(cuts.parts_of("x y" * 100, lambda text, at: False)) == ["x y" * 100]


def test_a_tokenizer_is_the_same_of_long_and_of_short_parts(monkeypatch):
    texts = list(KINDS.values())
    whole = tokenizer_hash(train_tokenizer(texts, 300))
    monkeypatch.setattr(cuts, "PART_CHARACTERS", 50)
    assert tokenizer_hash(train_tokenizer(texts, 300)) == whole
    monkeypatch.setattr(cuts, "_PLACE", re.compile("(?s)."))
    assert tokenizer_hash(train_tokenizer(texts, 300)) != whole, "control: other cuts"


def test_a_word_without_an_end_is_refused_by_its_place_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("ISOLOSS_HOME", str(tmp_path / "home"))
    longest = cuts.LONGEST_WITHOUT
    path = tmp_path / "genome.txt"
    path.write_text("\u4e00 " * longest + "ACGT" * (longest // 2), "utf-8")
    with pytest.raises(InputError, match=r"genome.txt: [0-9,]+ characters from byte ") as caught:
        library.add("genome", [path])
    assert f"{longest:,} characters from byte {4 * longest:,} on are one word ('ACGTACGT" in str(caught.value)
    assert not (tmp_path / "home" / "corpora" / "genome").exists()
    letters = "ACGT" * (longest // 4 - 1)
    path.write_text("\u4e00 " * longest + letters + "\n" + letters, "utf-8")
    library.add("genome", [path])


@pytest.mark.parametrize("kind", KINDS)
def test_text_of_every_kind_has_an_end_of_a_word(kind):
    cuts.check_places(KINDS[kind] * (3 * cuts.LONGEST_WITHOUT // len(KINDS[kind])), "here")
