"""Titles from a file, and those of the demo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from svmp.errors import FileError
from svmp.recommend import RatingModel
from svmp.recommend.service import demo
from svmp.recommend.service.catalogue import read_titles
from tests.recommend.tools import fitted


def titles_of(tmp_path: Path, text: str, words: bool = False) -> dict[int | str, str]:
    path = tmp_path / "titles.csv"
    path.write_bytes(text.encode())
    return read_titles(path, fitted(words=words))


def test_titles_are_matched_by_id(tmp_path: Path) -> None:
    assert titles_of(tmp_path, "id,title\n7,Seven\n14, Four teen \n8,no item\n") == {
        7: "Seven",
        14: "Four teen",
    }
    assert titles_of(tmp_path, '7,"Seven, and ""more"""\n\n14,x\n') == {
        7: 'Seven, and "more"',
        14: "x",
    }
    assert titles_of(tmp_path, "\ufeffid,year,title\r\n7,1999,Seven\r\n") == {7: "Seven"}
    assert titles_of(tmp_path, "i001,One\n7,no item\n", words=True) == {"i001": "One"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no id in the first column"),
        ("id,title\n8,Eight\n", "no id in the first column"),
        ("7,Seven\n14\n", "line 2: there is no title"),
        ("id,year,title\n7,1999,Seven\n14,2000\n", "line 3: there is no title"),
        ('7,"Seven\n' + "x" * 200_000, "cannot be read"),
    ],
)
def test_file_without_titles_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(FileError, match=reason):
        titles_of(tmp_path, text)


def test_binary_file_of_titles_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "titles.csv"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(FileError, match="cannot be read"):
        read_titles(path, fitted())
    with pytest.raises(FileError, match="cannot be read"):
        read_titles(tmp_path / "nothing.csv", fitted())


def test_titles_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "titles.csv"
    path.write_bytes("7,Amélie\n".encode("latin-1"))
    with pytest.raises(FileError, match="as --encoding latin-1"):
        read_titles(path, fitted())
    assert read_titles(path, fitted(), "latin-1") == {7: "Amélie"}
    with pytest.raises(FileError, match="there is no encoding 'klingon'"):
        read_titles(path, fitted(), "klingon")


def test_demo_is_small_and_matches_its_script() -> None:
    files = [file for file in demo.FOLDER.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 300_000
    rng = np.random.default_rng(demo.SEED)
    titles, share = demo.films(rng)
    drawn = demo.ratings(rng, share)
    model = RatingModel.load(demo.MODEL)
    assert read_titles(demo.TITLES, model) == dict(enumerate(titles))
    rows = np.lexsort((model.history_.item, model.history_.user))
    order = np.lexsort((drawn.item, drawn.user))
    np.testing.assert_array_equal(model.history_.item[rows], drawn.item[order])
    np.testing.assert_array_equal(model.history_.rating[rows], drawn.rating[order])


@pytest.mark.slow
def test_demo_is_reproduced_by_its_script(tmp_path: Path) -> None:
    demo.make(tmp_path)
    assert (tmp_path / demo.TITLES.name).read_bytes() == demo.TITLES.read_bytes()
    made, kept = RatingModel.load(tmp_path / demo.MODEL.name), RatingModel.load(demo.MODEL)
    every = np.arange(len(kept.items_))
    np.testing.assert_allclose(made.predict(3, every), kept.predict(3, every), atol=0.01)


def test_rating_comedies_highly_recommends_comedies() -> None:
    """The factors have found the genres, which are not in the data."""
    model = RatingModel.load(demo.MODEL)
    titles = read_titles(demo.TITLES, model)
    for genre in demo.WORDS:
        alone = [item for item, title in titles.items() if title.endswith(f"({genre})")]
        assert len(set(titles.values())) == len(titles)

        def share(person: object, genre: str = genre) -> float:
            items = model.recommend(person, 10).items.tolist()
            return float(np.mean([genre in titles[item] for item in items]))

        liked = model.fold_in(alone[:2], [5, 5])
        disliked = model.fold_in(alone[:2], [1, 1])
        assert share(liked) >= 0.7 > 0.3 >= share(disliked)
