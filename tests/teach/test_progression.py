"""What the training demo tells, on tables made by hand: no model is trained here."""

import json

import pytest

from isoloss.teach import words
from isoloss.teach.panels import panel
from isoloss.teach.progression import draw, tell
from isoloss.teach.progression.curves import curves, rate_rows
from isoloss.teach.progression.settings import TrainingSettings

UPDATES = (0, 10, 20, 30, 40)


def made(transformer, lstm, *, seeds=3, floor=0.4, end=0.42, hits=(70, 70), prompt=17, noise=0.02):
    """Tables of a run whose held-out losses at ``UPDATES`` are given; seeds differ by ``noise``."""
    tables = {name: [] for name in ("runs", "copies", "samples", "rates", "losses", "best")}
    tables["corpus"] = [
        {"training": 80, "held_out": 20, "floor": floor, "uniform": 4.7, "vocabulary": 115}
        | {"begin_with_prompt": prompt}
    ]
    for side, held_out, hit in zip(("Transformer", "LSTM"), (transformer, lstm), hits, strict=True):
        tables["rates"].append({"side": side, "rate": 0.03, "chosen": True, "turn": 20})
        for seed in range(seeds):
            away = noise * (seed - (seeds - 1) / 2)
            run = {"side": side, "seed": seed, "rate": 0.03}
            for update, loss in zip(UPDATES, held_out, strict=True):
                training = 4.7 + (end - 4.7) * update / UPDATES[-1]
                tables["runs"] += [
                    run | {"update": update, "which": "training", "value": training},
                    run | {"update": update, "which": "held-out", "value": loss + away},
                ]
                copied = hit if update == UPDATES[-1] else 0
                tables["copies"].append(
                    run | {"update": update, "hits": copied, "n": 80, "value": copied / 80}
                )
    tables["losses"] = [{"finished": True}]
    return tables


def stopped_at(update, losses):
    """Tables of a run that was stopped while the LSTM trained."""
    tables = made((2.5, 2.0, 2.1, 2.3, 2.6), losses)
    runs = [row for row in tables["runs"] if row["side"] != "LSTM" or row["update"] <= update]
    return tables | {"losses": [], "runs": runs}


@pytest.mark.parametrize(
    ("update", "said"),
    [
        (0, "Stopped before anything was learned."),
        (10, "Stopped early: the LSTM was still getting better on new sentences."),
        (30, "Stopped in time: the LSTM is about at its best on new sentences."),
        (40, "Stopped late: on new sentences the LSTM was best after 20 updates."),
    ],
)
def test_a_run_that_the_class_stopped_says_whether_that_was_early_or_late(update, said):
    settings, losses = panel("training").settings(), (3.0, 2.4, 2.0, 2.02, 2.6)
    first, floor = tell.sentences(settings, stopped_at(update, losses))
    assert (first.key, floor.key) == ("stopped", "floor")
    assert first.short == said
    assert f"Stopped after {update} of 100 updates: the LSTM" in first.text
    assert "(mean of 3 runs)" in first.text
    (other, _) = tell.sentences(settings, swapped(stopped_at(update, losses)))
    assert other.short == said.replace("LSTM", "Transformer"), "either side may be in training"
    assert tell.figures(settings, stopped_at(update, losses))
    # A rate that went before says nothing of the one in training.
    before = [row | {"rate": 0.01, "value": 9.0 - row["update"]} for row in tables_of_the_lstm(losses)]
    both = stopped_at(update, losses)
    both["runs"] = [*both["runs"][: -len(before)], *before, *both["runs"]]
    assert tell.sentences(settings, both)[0].short == said
    # Control: a run that went to its end says nothing of a stop.
    assert "stopped" not in [one.key for one in tell.sentences(settings, made(losses, losses))]


def tables_of_the_lstm(losses):
    return [row for row in made(losses, losses)["runs"] if row["side"] == "LSTM"]


def swapped(tables):
    other = {"Transformer": "LSTM", "LSTM": "Transformer"}
    return {
        name: [row | {"side": other[row["side"]]} if "side" in row else row for row in rows]
        for name, rows in tables.items()
    }


def said(tables, key, **settings):
    return {s.key: s.text for s in tell.sentences(TrainingSettings(**settings), tables)}[key]


LOW, HIGH = (4.7, 3.0, 2.0, 2.6, 3.2), (4.7, 3.2, 2.5, 2.9, 3.4)


def test_the_verdict_flips_when_the_sides_are_swapped():
    tables = made(LOW, HIGH)
    assert "the Transformer is lower" in said(tables, "best")
    assert "the LSTM is lower" in said(swapped(tables), "best")
    assert "the Transformer is lower" in tell.figures(TrainingSettings(), tables)[0].title
    assert "the LSTM is lower" in tell.figures(TrainingSettings(), swapped(tables))[0].title


def test_overlapping_intervals_give_no_clear_difference():
    tables = made(LOW, HIGH, noise=1.0, seeds=5)
    for each in (tables, swapped(tables)):
        assert "no clear difference" in said(each, "best")
    few = said(made(LOW, HIGH, noise=1.0), "best")
    assert few.startswith("Three seeds are too few to tell who is lower on the 20 held-out sentences")
    assert "Transformer 1.00 to 3.00, LSTM 1.50 to 3.50 nats" in few
    for each in (tables, swapped(tables)):
        assert "no clear difference" in tell.figures(TrainingSettings(), each)[0].title


def test_who_copies_more_flips_too():
    tables = made(LOW, HIGH, hits=(78, 40))
    assert "the Transformer copies more" in said(tables, "copied")
    assert "the LSTM copies more" in said(swapped(tables), "copied")
    assert "no clear difference" in said(made(LOW, HIGH, hits=(70, 68), seeds=5), "copied")
    assert "three seeds are too few to tell which" in said(made(LOW, HIGH, hits=(70, 68)), "copied")


def test_the_turn_is_told_only_where_there_is_one():
    rising, falling, flat = LOW, (4.7, 4.0, 3.5, 3.2, 3.0), (4.7, 3.0, 2.0, 2.02, 2.03)
    tables = made(rising, falling)
    assert "turns up after update 20" in said(tables, "memorising-transformer")
    assert "memorising made visible" in said(tables, "memorising-transformer")
    assert "lowest at the last of 40 updates" in said(tables, "memorising-lstm")
    assert "turns up after update 20" in said(swapped(tables), "memorising-lstm")
    assert "does not clearly rise within 40 updates" in said(made(flat, flat), "memorising-lstm")


def test_a_capped_run_reads_not_within_its_updates():
    text = said(made(LOW, HIGH, end=1.0), "memorising-lstm")
    assert "not within 0.05 nats of the floor within 40 updates" in text
    assert "memorising made visible" not in text
    assert "in 3 of 3 seeds" in said(made(LOW, HIGH), "memorising-lstm")


def test_one_seed_gives_no_verdict():
    tables = made(LOW, HIGH, seeds=1)
    assert "no verdict" in said(tables, "best", seeds=1)
    assert "one seed gives no interval" in said(tables, "memorising-lstm", seeds=1)
    assert "one seed gives no verdict" in said(tables, "copied", seeds=1)
    assert "gives no verdict" in draw.loss_title(tables)


def test_a_prompt_that_begins_no_training_sentence_is_told():
    assert "No training sentence begins with the prompt" in said(made(LOW, HIGH, prompt=0), "copied")


def test_nothing_is_claimed_of_a_run_that_goes_on():
    tables = made(LOW, HIGH) | {"losses": []}
    assert [s.key for s in tell.sentences(TrainingSettings(), tables)] == ["stopped", "floor"]
    titles = [figure.title for figure in tell.figures(TrainingSettings(), tables)]
    assert all(title.endswith("so far") for title in titles)


def test_figures_are_drawn_from_any_part_of_the_tables():
    tables = made(LOW, HIGH)
    assert tell.figures(TrainingSettings(), {"corpus": tables["corpus"]}) == []
    first = {"corpus": tables["corpus"], "runs": tables["runs"][:2], "copies": tables["copies"][:1]}
    for figure in (*tell.figures(TrainingSettings(), first), *tell.figures(TrainingSettings(), tables)):
        assert figure.chart.to_dict()
        assert words.faults(figure.title) == []
        assert not figure.table.is_empty()


def at_rates(shown, **others):
    """Tables of several rates: ``shown`` at 0.03, the others by name, such as ``rate_0_1``."""
    tables = shown
    for name, other in others.items():
        rate = float(name.removeprefix("rate_").replace("_", "."))
        tables["runs"] = [*(row | {"rate": rate} for row in other["runs"]), *tables["runs"]]
        tables["rates"] = [
            *tables["rates"],
            *(row | {"rate": rate, "chosen": False} for row in other["rates"]),
        ]
    return tables


def short_of(tables, key):
    return {s.key: s for s in tell.sentences(TrainingSettings(), tables)}[key].short


EARLY = (4.7, 2.0, 2.6, 3.2, 3.6)


def test_the_turn_is_told_of_both_at_one_rate_and_the_other_rates_stand_beside_it():
    late = (4.7, 3.4, 2.8, 2.5, 2.9)
    tables = at_rates(made(LOW, HIGH), rate_0_1=made(LOW, EARLY), rate_0_01=made(late, late))
    text = said(tables, "turn")
    assert "one learning rate, 0.03" in text
    assert "the Transformer is best after update 20, the LSTM after update 20" in text
    assert "at rate 0.01 after 30 and 30; at rate 0.1 after 20 and 10" in text
    assert short_of(tables, "turn") == "After update 20 both get worse on new sentences."
    # Both get worse only after the later turn.
    assert short_of(made(LOW, EARLY), "turn") == "After update 20 both get worse on new sentences."
    falling = (4.7, 4.0, 3.5, 3.2, 3.0)
    one = "Only the Transformer gets worse on new sentences, after update 20."
    assert short_of(made(LOW, falling), "turn") == one
    assert short_of(swapped(made(LOW, falling)), "turn") == one.replace("Transformer", "LSTM")
    assert short_of(made(falling, falling), "turn") == "Neither clearly gets worse on new sentences."
    assert short_of(made(LOW, HIGH, seeds=1), "turn") == "One seed is too few to tell."


def test_who_is_better_is_not_said_where_another_rate_turns_it_round():
    depends = "Who is better, stopped in time, depends on the learning rate."
    won = "Stopped in time, the Transformer is better on new sentences."
    same = at_rates(made(LOW, HIGH), rate_0_1=made(LOW, HIGH))
    turned = at_rates(made(LOW, HIGH), rate_0_1=made(HIGH, LOW))
    assert [short_of(tables, "best") for tables in (same, turned)] == [won, depends]
    ahead = [{s.key: s for s in tell.sentences(TrainingSettings(), t)}["best"].ahead for t in (same, turned)]
    assert ahead == ["Transformer", ""]
    assert "; at rate 0.1 -0.50 (" in said(same, "best")
    assert "; at rate 0.1 +0.50 (" in said(turned, "best")


def test_both_models_are_shown_at_the_rate_where_they_train_lowest_together():
    """Not each at its own best: the LSTM ends lowest at 0.1, the Transformer at 0.03."""

    def trained(side, rate, end):
        return [row | {"rate": rate} for row in made(LOW, HIGH, end=end)["runs"] if row["side"] == side]

    runs = [
        *(trained("Transformer", 0.03, 0.45) + trained("Transformer", 0.1, 0.9)),
        *(trained("LSTM", 0.03, 0.6) + trained("LSTM", 0.1, 0.42)),
    ]
    chosen = [(row["side"], row["rate"]) for row in rate_rows({"runs": runs}) if row["chosen"]]
    assert chosen == [("Transformer", 0.03), ("LSTM", 0.03)]
    # Control: with a Transformer that trains at 0.1 as well, both are shown there.
    runs = [row for row in runs if (row["side"], row["rate"]) != ("Transformer", 0.1)]
    runs += trained("Transformer", 0.1, 0.5)
    assert {row["rate"] for row in rate_rows({"runs": runs}) if row["chosen"]} == {0.1}


def test_only_the_chosen_rate_is_told():
    tables = made(LOW, HIGH)
    other = [row | {"rate": 0.01, "value": 0.0} for row in tables["runs"]]
    tables["runs"] = [*other, *tables["runs"]]
    tables["rates"] += [row | {"rate": 0.01, "chosen": False} for row in tables["rates"]]
    assert curves(tables)["LSTM"].best[0][0] == pytest.approx(2.48)


def test_markup_in_own_sentences_is_escaped():
    own = "\n".join(f"we like <b>bold</b> <script>x</script> {n}" for n in range(12))
    settings = TrainingSettings(corpus=own, prompt="we like <b>bold</b>")
    tables = made(LOW, HIGH)
    tables["samples"] = [
        {"side": "LSTM", "seed": 0, "rate": 0.03, "update": 40, "decoding": "greedy", "copied": True}
        | {"text": "we like <b>bold</b> <script>x</script> 3", "longest": 4, "words": 4}
    ]
    page = tell.html(settings, tables)
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert any("<script>x</script>" in line for line in tell.lines(settings, tables))


def test_the_axis_of_updates_stands_still_while_training_runs():
    settings, tables = TrainingSettings(), made(LOW, HIGH)
    early = tables | {"runs": [row for row in tables["runs"] if row["update"] == 0], "losses": []}
    specs = [json.dumps(tell.figures(settings, t)[0].chart.to_dict(validate=False)) for t in (tables, early)]
    assert all(f'"domain": [0, {settings.updates}]' in spec for spec in specs)
