"""Folders and archives as distributed by MovieLens and the Netflix Prize."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from svmp.errors import RatingsError
from svmp.ratings import read_ratings
from tests.ratings.tools import Plain, contents, expected, netflix, random_table

OTHERS = {"README.txt": "SUMMARY", "movies.dat": "1::Toy Story (1995)::Comedy\n", "tags.csv": "a,b"}


def handed_out(kind: str, table: Plain) -> dict[str, str]:
    """Return the files of one of them, by name."""
    movies = sorted(set(table.item))
    match kind:
        case "MovieLens 100K":
            return {"u.data": table.csv("\t", header=""), "u.item": "1|Toy Story (1995)|"}
        case "MovieLens 1M":
            return {"ratings.dat": table.csv("::", header="")}
        case "MovieLens latest":
            return {"ratings.csv": table.csv().replace("\n", "\r\n")}
        case "Kaggle":
            halves = movies[:10], movies[10:]
            return {f"combined_data_{n + 1}.txt": netflix(table, h) for n, h in enumerate(halves)}
    return {f"mv_{movie:07}.txt": netflix(table, [movie]) for movie in movies}


KINDS = ("MovieLens 100K", "MovieLens 1M", "MovieLens latest", "Kaggle", "Netflix Prize")


@pytest.mark.parametrize("kind", KINDS)
def test_folders_and_archives_as_distributed(kind: str, tmp_path: Path) -> None:
    table = random_table(4)
    files = {**OTHERS, **handed_out(kind, table)}
    folder = tmp_path / "ml"
    folder.mkdir()
    with zipfile.ZipFile(tmp_path / "ml.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("ml")
        for name, text in files.items():
            (folder / name).write_bytes(text.encode())
            archive.writestr(f"ml/{name}", text)
    for source in (folder, tmp_path / "ml.zip"):
        assert contents(read_ratings(source)) == expected(table)


def packed(tmp_path: Path, files: dict[str, str]) -> Path:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def refused(path: Path) -> str:
    with pytest.raises(RatingsError) as error:
        read_ratings(path)
    return str(error.value)


def test_files_read_together_are_kept_separate(tmp_path: Path) -> None:
    """Errors name the right file and line; a file without a movie does not continue the last."""
    good, row = "7:\n1,3,2005-09-06\n", "2,4,2005-09-06\n"
    for name, text in {"mv_1.txt": good, "mv_2.txt": "8:\n" + row, "mv_3.txt": row}.items():
        (tmp_path / name).write_text(text)
    assert refused(tmp_path) == f"{tmp_path / 'mv_3.txt'}, line 1: there is no item"
    (tmp_path / "mv_3.txt").write_text("9:\n2,x,2005-09-06\n")
    said = f"{tmp_path / 'mv_3.txt'}, line 2: the rating is 'x', not a number"
    assert refused(tmp_path) == said
    (tmp_path / "mv_3.txt").write_text("9:\n2,1,2005-09-06,5\n")
    assert refused(tmp_path) == f"{tmp_path / 'mv_3.txt'}, line 2: this is not user,rating,date"
    (tmp_path / "mv_3.txt").write_bytes(b"9:\n2,1,2005\xff\n")
    assert refused(tmp_path).startswith(f"{tmp_path / 'mv_3.txt'}, line 2: this is not utf-8")


def test_archive_of_one_file_with_any_name(tmp_path: Path) -> None:
    table = random_table(5)
    assert contents(read_ratings(packed(tmp_path, {"x.txt": table.csv()}))) == expected(table)


def test_errors_in_an_archive_name_the_file_and_line(tmp_path: Path) -> None:
    path = packed(tmp_path, {"ml-1m/ratings.dat": "1::2::3::4\n1::3::x::4\n", **OTHERS})
    assert refused(path) == f"{path}/ml-1m/ratings.dat, line 2: the rating is 'x', not a number"
    twice = {f"{half}/ratings.csv": "user,item,rating\n1,2,3\n" for half in ("test", "train")}
    for files in (OTHERS, twice):
        assert "an archive without mv_*.txt" in refused(packed(tmp_path, files))


def test_damaged_archives_are_reported(tmp_path: Path) -> None:
    path = packed(tmp_path, {"ratings.csv": random_table(6).csv()})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "damaged or cut short" in refused(path)
    middle = len(whole) // 3
    path.write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 :])
    assert "the archive cannot be read" in refused(path)


def test_npz_file_is_not_an_archive_of_text(tmp_path: Path) -> None:
    path = tmp_path / "arrays.zip"
    with path.open("wb") as file:
        np.savez(file, user=[1, 2], item=[3, 3], rating=[4.0, 5.0])
    assert read_ratings(path).user_ids.tolist() == [1, 2]
