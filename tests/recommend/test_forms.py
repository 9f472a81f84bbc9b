"""Which form q of the factors has: given, or chosen by held-out ratings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmp.ratings import Ratings
from svmp.recommend import RatingModel
from svmp.recommend.learn import LearnSettings, TableSearch, forms_of
from svmp.recommend.stages import Stage
from tests.recommend.tools import drawn, parts


def settings(factors: int, covariance: Any) -> LearnSettings:
    return LearnSettings(factors, covariance, "user", 150, 1e-5, 0, 1, False)


@pytest.mark.parametrize(("factors", "dense"), [(0, False), (1, False), (12, True), (13, False)])
def test_covariances_are_tried_where_keys_have_as_many_ratings_as_factors(
    factors: int, dense: bool
) -> None:
    ratings = drawn(0, 1200)  # of 60 users and 40 items: 12 each
    expected = ["diagonal", "full"] if dense else ["diagonal"]
    assert forms_of(settings(factors, "auto"), ratings) == expected


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_a_form_that_is_given_is_taken(form: Any) -> None:
    assert forms_of(settings(3, form), drawn(0)) == [form]
    model = RatingModel(3, covariance=form, progress=False, threads=1, max_sweeps=40)
    assert model.fit(parts().train).users_.side.full == (form == "full")


def test_the_choice_is_the_one_with_the_smaller_held_out_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors: dict[str, list[float]] = {"diagonal": [], "full": []}
    original = TableSearch.kept

    def kept(self: TableSearch, stage: Stage) -> Stage:
        if stage.factors:
            errors[self.form].append(stage.error)
        return original(self, stage)

    monkeypatch.setattr(TableSearch, "kept", kept)
    for seed in range(3):
        for found in errors.values():
            found.clear()
        model = RatingModel(3, covariance="auto", progress=False, threads=1)
        model.fit(parts(seed).train)
        if model.users_.side.factors:
            least = {form: min(found, default=np.inf) for form, found in errors.items()}
            assert model.users_.side.full == (least["full"] < least["diagonal"])


def test_auto_with_nothing_held_out_is_diagonal() -> None:
    ratings: Ratings = parts().train
    model = RatingModel(
        3, covariance="auto", calibrate=0, progress=False, threads=1, max_sweeps=5
    ).fit(ratings)
    assert not model.users_.side.full
