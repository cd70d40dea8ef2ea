"""One tree of errors: what is wrong, where, how to mend it; the same in another process."""

import concurrent.futures
import inspect
import multiprocessing
import pickle

import pytest

from isoloss import errors
from isoloss.errors import InputError, IsolossError, Refusal, RunError, attempt

KINDS = [IsolossError, InputError, Refusal, RunError]


@pytest.mark.parametrize(("kind", "code"), [(IsolossError, 1), (InputError, 2), (Refusal, 3), (RunError, 1)])
def test_exit_codes(kind, code):
    assert kind("x").exit_code == code


def test_every_error_is_in_the_one_tree():
    defined = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__
    ]
    assert set(defined) == set(KINDS)
    assert all(issubclass(kind, IsolossError) for kind in defined)


def test_the_message_says_where_what_and_how_to_mend_it():
    error = InputError("is not TOML", where="my.toml", mend="mend line 3")
    assert str(error) == "my.toml: is not TOML\n  To mend it: mend line 3"
    assert str(InputError("is not TOML", where="my.toml")) == "my.toml: is not TOML"
    assert (
        str(InputError("there is no study", mend="use another"))
        == "there is no study\n  To mend it: use another"
    )
    assert str(InputError("{braces} %s")) == "{braces} %s"


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_a_process_border(kind):
    error = kind("what é", where="here", mend="this way")
    reloaded = pickle.loads(pickle.dumps(error))  # noqa: S301 - what multiprocessing does between our own processes
    assert type(reloaded) is kind
    assert (reloaded.what, reloaded.where, reloaded.mend, str(reloaded)) == (
        error.what,
        error.where,
        error.mend,
        str(error),
    )


def refuse(n: int) -> None:
    raise Refusal(f"{n} points cannot say", mend="give more")


def test_an_error_raised_in_a_worker_arrives_whole():
    context = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool,
        pytest.raises(Refusal) as caught,
    ):
        pool.submit(refuse, 3).result(timeout=60)
    assert (caught.value.what, caught.value.mend, caught.value.exit_code) == (
        "3 points cannot say",
        "give more",
        3,
    )


def test_an_attempt_gives_its_value_or_the_refusal_and_lets_other_errors_through():
    def half(number, *, least=0):
        if number < least:
            raise Refusal("too small")
        return number / 2

    assert attempt(half, 4) == 2
    assert attempt(half, 4, least=5).what == "too small"
    with pytest.raises(TypeError):
        attempt(half, "4")
