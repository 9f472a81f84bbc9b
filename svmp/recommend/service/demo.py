"""The demo: invented films with simulated ratings.

    python -m svmp.recommend.service.demo

creates it again. Every film has a genre, some have a second; every user likes some genres more than
others, and gives one to five stars accordingly, with noise. The model sees only the stars.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from svmp.ratings import Ratings
from svmp.recommend.rating import RatingModel

FOLDER = Path(__file__).parent / "films"
MODEL, TITLES = FOLDER / "model.svmp", FOLDER / "titles.csv"
USERS, EACH, FACTORS, SEED = 600, 30, 10, 2014
SECOND = 0.3
"""Share of films with a second genre."""
WORDS = {
    "comedy": (
        "Grandmother|The Plumber|A Penguin|My Landlord|Uncle Otto|The Wrong Twin",
        "on Roller Skates|Goes to Lunch|Without a Plan|in the Wrong Hotel|Runs for Mayor",
    ),
    "horror": (
        "The Cellar|The Nursery|The Well|The Wax House|The Orchard|Room Nought",
        "Remembers|at Midnight|Has Teeth|Below the Chapel|Is Hungry",
    ),
    "science fiction": (
        "The Cartographer|A Signal|The Last Algorithm|Winter|A Garden|The Clockmaker",
        "of Titan|Beyond the Heliopause|in Orbit Eleven|After Gravity|from Proxima",
    ),
    "romance": (
        "A Summer|Letters|The Baker|Two Umbrellas|One Dance|The Lighthouse",
        "in Lisbon|Before Breakfast|for Clara|Under the Plum Tree|by the Slow Train",
    ),
    "western": (
        "The Sheriff|Six Horses|A Stranger|The Widow|Dust|The Stagecoach",
        "at Copper Creek|of Dry Gulch|West of Nowhere|Before High Water|on the Salt Road",
    ),
    "documentary": (
        "The Secret Life|A Short History|The Physics|The Quiet World|The Hidden Maths|The Memory",
        "of Moss|of Glaciers|of Bread|of Night Trains|of Beekeeping",
    ),
    "family": (
        "Pip the Badger|The Paper Dragon|Mimi Moon|Captain Button|The Singing Teapot|Little Cloud",
        "Learns to Fly|Finds a Friend|Goes to School|Saves Winter|and the Lost Key",
    ),
    "crime": (
        "Inspector Vale|The Night Clerk|Madame Orsini|The Locksmith|Sergeant Bloom|The Notary",
        "and the Forged Will|and the Missing Violin|and the Red Ledger|and the Empty Train|in Fog",
    ),
}
"""Beginnings and ends of titles, by genre."""


def films(rng: np.random.Generator) -> tuple[list[str], NDArray[np.float64]]:
    """Return titles, and the share of each genre in a film."""
    titles, share = [], []
    names = list(WORDS)
    for genre, (beginnings, ends) in enumerate(WORDS.values()):
        for beginning in beginnings.split("|"):
            for end in ends.split("|"):
                row = np.eye(len(names))[genre]
                kinds = [names[genre]]
                if rng.random() < SECOND:
                    other = rng.choice([g for g in range(len(names)) if g != genre])
                    row[other] = 0.6
                    kinds.append(names[other])
                titles.append(f"{beginning} {end} ({', '.join(kinds)})")
                share.append(row)
    return titles, np.array(share)


def ratings(rng: np.random.Generator, share: NDArray[np.float64]) -> Ratings:
    """Simulate ratings; popular films are rated more often."""
    count, genres = len(share), len(WORDS)
    liking = 0.9 * rng.standard_normal((USERS, genres))
    of_user, of_film = 0.25 * rng.standard_normal(USERS), 0.3 * rng.standard_normal(count)
    odds = np.exp(0.8 * rng.standard_normal(count) + of_film)
    chosen = [rng.choice(count, EACH, replace=False, p=odds / odds.sum()) for _ in range(USERS)]
    user, film = np.repeat(np.arange(USERS), EACH), np.concatenate(chosen)
    score = 3.2 + of_user[user] + of_film[film]
    score += np.einsum("rg,rg->r", liking[user], share[film])
    stars = np.clip(np.rint(score + 0.6 * rng.standard_normal(len(user))), 1, 5)
    return Ratings.of_keys(user, film, stars, USERS, count)


def make(folder: Path = FOLDER) -> None:
    """Write the demo into a folder."""
    rng = np.random.default_rng(SEED)
    titles, share = films(rng)
    # Without covariances the files are a third as large.
    model = RatingModel(FACTORS, covariance="diagonal", max_sweeps=100, progress=False)
    model.fit(ratings(rng, share))
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / MODEL.name)
    with (folder / TITLES.name).open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["id", "title"])
        rows.writerows(enumerate(titles))


if __name__ == "__main__":
    make()
