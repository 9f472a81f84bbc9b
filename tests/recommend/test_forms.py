"""Which form q of the factors has: given, or chosen by the number of ratings."""

from __future__ import annotations

from typing import Any

import pytest

from svmp.recommend import RatingModel, learn
from svmp.recommend.learn import LearnSettings, form_for
from svmp.recommend.starts import MANY
from tests.recommend.tools import drawn, parts


def settings(factors: int, covariance: Any) -> LearnSettings:
    return LearnSettings(factors, covariance, "user", 150, 1e-5, 0, 1, False)


@pytest.mark.parametrize(("factors", "cheap"), [(0, False), (1, True), (46, True), (47, False)])
def test_factors_have_covariances_where_these_are_cheap(factors: int, cheap: bool) -> None:
    ratings = drawn(0, 1200)  # of 60 users and 40 items, so that vectors may have 48 entries
    auto = settings(factors, "auto")
    assert form_for(auto, ratings, held=True) == ("full" if cheap else "diagonal")
    assert form_for(auto, ratings, held=False) == "diagonal"
    assert form_for(auto._replace(max_sweeps=MANY - 1), ratings, held=True) == "diagonal"


def test_covariances_that_need_too_much_memory_are_not_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for most, form in ((100 * 5**2, "full"), (100 * 5**2 - 1, "diagonal")):
        monkeypatch.setattr(learn, "NUMBERS", most)
        assert form_for(settings(3, "auto"), drawn(0, 1200), held=True) == form


def test_covariances_that_too_many_ratings_read_are_not_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for most, form in ((1200 * 5**2, "full"), (1200 * 5**2 - 1, "diagonal")):
        monkeypatch.setattr(learn, "WORK", most)
        assert form_for(settings(3, "auto"), drawn(0, 1200), held=True) == form


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_a_form_that_is_given_is_taken(form: Any) -> None:
    assert form_for(settings(3, form), drawn(0), held=False) == form
    model = RatingModel(3, covariance=form, progress=False, threads=1, max_sweeps=40)
    assert model.fit(parts().train).users_.side.full == (form == "full")


def test_the_default_has_covariances_only_if_ratings_are_held_out() -> None:
    ratings = parts().train  # 5% of them are fewer than 50, so none would be held out
    for calibrate in (0.1, 0.0):
        model = RatingModel(3, calibrate=calibrate, progress=False, threads=1, max_sweeps=MANY)
        model.fit(ratings)
        assert model.users_.side.full == (calibrate > 0 and model.users_.side.factors > 0)
