"""Kriging: nearness by its formula, the mean error of its parts, and one thread for small matrices."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from time import sleep

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from isoloss.plans.forecast import kriging
from isoloss.plans.forecast.bases import SEVERAL_INPUTS, fit_base


def kriged(size: int = 40) -> kriging.Kriged:
    """A law of two inputs around runs with a wave in their residuals."""
    rng = np.random.default_rng(3)
    z_In = rng.uniform(-2.5, 2.5, (2, size))
    y_n = np.log(1.8 + np.exp(-0.3 * z_In[0]) + np.exp(-0.35 * z_In[1])) + 0.01 * np.sin(2 * z_In[0])
    y_n += 0.003 * rng.standard_normal(size)
    y_n -= y_n.mean()
    return kriging.krige(fit_base(SEVERAL_INPUTS[0], z_In, y_n), z_In, y_n, np.arange(size))


def test_nearness_is_a_normal_curve_of_the_distance():
    rng = np.random.default_rng(0)
    here_In, there_Iq, length_n = rng.normal(size=(3, 7)), rng.normal(size=(3, 5)), rng.uniform(1, 6, 7)
    away_nq = np.linalg.norm(here_In[:, :, None] - there_Iq[:, None, :], axis=0)
    np.testing.assert_allclose(kriging.near(here_In, there_Iq, 1.5), np.exp(-(away_nq**2) / 4.5), rtol=1e-13)
    each_nq = np.exp(-(away_nq**2) / (2 * length_n[:, None] ** 2))
    np.testing.assert_allclose(kriging.near(here_In, there_Iq, length_n[:, None]), each_nq, rtol=1e-13)


def test_the_mean_error_is_what_the_mean_has_beyond_the_law():
    law = kriged()
    at_Iq = np.random.default_rng(1).uniform(-3, 3, (2, 9))
    beyond_q = law.moments(at_Iq)[0] - law.fit.value(at_Iq)[0]
    np.testing.assert_allclose(law.error(at_Iq), beyond_q, rtol=1e-9, atol=1e-14)
    assert np.abs(beyond_q).max() > 1e-3
    np.testing.assert_allclose(law.covariance(at_Iq)[0], law.moments(at_Iq)[0], rtol=1e-13)


def test_kriging_leaves_the_other_cores_alone(monkeypatch: pytest.MonkeyPatch):
    """As many threads as cores made a forecast of 240 runs three times slower on two."""
    blas = ThreadpoolController().select(user_api="blas")

    def threads() -> set[int]:
        return {library["num_threads"] for library in blas.info()}

    inside, krige = [], kriging._krige
    monkeypatch.setattr(kriging, "_krige", lambda *given: (inside.append(threads()), krige(*given))[1])
    with blas.limit(limits=2):
        kriged()
        assert inside == [{1}]
        assert threads() == {2}


def set_threads(blas: ThreadpoolController, count: int) -> None:
    """By a thread that ends: while one that set them lives, those of others have no effect."""
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(lambda library: library.set_num_threads(count), blas.lib_controllers))


def test_forecasts_in_two_threads_leave_the_threads_of_others_as_they_were(monkeypatch: pytest.MonkeyPatch):
    """The limit belongs to the process: each would keep what the other had set."""
    together, krige = Barrier(2), kriging._krige

    def slow(*given: object) -> kriging.Kriged:
        with suppress(BrokenBarrierError):
            if together.wait(timeout=0.5) == 1:  # who came second leaves last
                sleep(0.5)
        return krige(*given)

    monkeypatch.setattr(kriging, "_krige", slow)
    blas = ThreadpoolController().select(user_api="blas")
    before = blas.info()[0]["num_threads"]
    set_threads(blas, 2)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: kriged(), range(2)))
    assert {library["num_threads"] for library in blas.info()} == {2}
    set_threads(blas, before)
