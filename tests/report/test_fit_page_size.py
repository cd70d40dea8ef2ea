"""The page of a fit to a thousand runs is one file of a megabyte at most, with all its pictures."""

import numpy as np
import polars as pl

import isoloss
from isoloss import report


def test_a_page_of_a_thousand_runs_is_of_a_megabyte_at_most(tmp_path):
    rng = np.random.default_rng(0)
    params = 10 ** rng.uniform(6, 9, 1000)
    tokens = params * 10 ** rng.uniform(0.3, 2, 1000)
    loss = (1.7 + 400 * params**-0.34 + 410 * tokens**-0.28) * np.exp(rng.normal(0, 0.005, 1000))
    pl.DataFrame({"params": params, "tokens": tokens, "loss": loss}).write_csv(tmp_path / "runs.csv")
    written = report.write_fit(isoloss.fit("chinchilla", tmp_path / "runs.csv"), tmp_path / "page")
    assert 500_000 < written.path.stat().st_size <= 1_000_000
    assert len(written.figures) > 12
