"""The service answers as the model does; invalid requests are refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest

from svmp.recommend import RatingModel, load
from svmp.recommend.service import demo

from .conftest import client_of, saved, wait_for


@pytest.fixture
def model(kind: str, folder: Path) -> Any:
    return load(saved(kind, folder))


def ask(client: httpx.Client, path: str, status: int = 200, **body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def history(model: Any, keys: Any) -> list[dict[str, Any]]:
    """A history of some items, with ratings, or counts, from 1."""
    return [{"item": model.items_.ids[k].item(), "rating": 1.0 + n % 3} for n, k in enumerate(keys)]


def folded(model: Any, keys: Any) -> Any:
    rows = history(model, keys)
    return model.fold_in([row["item"] for row in rows], [row["rating"] for row in rows])


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, np.asarray(wanted, np.float64), atol=1e-6)


def test_recommendations_equal_the_model(client: httpx.Client, model: Any) -> None:
    users = model.users_.ids[:3].tolist()
    found = ask(client, "/recommend", users=users, n=4, level=0.8)["users"]
    assert [row["user"] for row in found] == users
    top = model.recommend(np.array(users), 4)
    for place, (user, row) in enumerate(zip(users, found, strict=True)):
        items = [one["item"] for one in row["items"]]
        assert items == top.items[place].tolist()
        same([one["score"] for one in row["items"]], top.scores[place])
        same([one["std"] for one in row["items"]], top.stds[place])
        same([one["mean"] for one in row["items"]], model.predict(user, items))
        low, high = model.predict_interval(user, items, 0.8)
        same([one["low"] for one in row["items"]], low)
        same([one["high"] for one in row["items"]], high)
    alone = ask(client, "/recommend", users=users[:1], n=4, level=0.8)["users"]
    assert alone == found[:1]


def test_rankings_accept_all_parameters_of_the_model(client: httpx.Client, model: Any) -> None:
    user, ids = model.users_.ids[1].item(), model.items_.ids.tolist()
    options: list[dict[str, Any]] = [
        {"explore": "ucb", "width": 2.0},
        {"explore": "thompson", "seed": 7},
        {"candidates": ids[:9], "exclude": ids[:3], "exclude_seen": False},
    ]
    for chosen in options:
        found = ask(client, "/recommend", users=[user], n=5, **chosen)["users"][0]["items"]
        top = model.recommend(user, 5, **chosen)
        assert [row["item"] for row in found] == top.items.tolist()


def test_fold_in_and_explanations_equal_the_model(client: httpx.Client, model: Any) -> None:
    rows = history(model, [2, 3, 5])
    person = folded(model, [2, 3, 5])
    found = ask(client, "/fold-in", history=rows, n=3)["items"]
    top = model.recommend(person, 3)
    assert [row["item"] for row in found] == top.items.tolist()
    same([row["score"] for row in found], top.scores)
    items = top.items.tolist()
    for reason in ask(client, "/explain", history=rows, items=items)["explanations"]:
        why = model.explain(person, reason["item"])
        assert reason["score"] == pytest.approx(why.prediction, abs=1e-5)
        assert [part["item"] for part in reason["parts"]] == why.items.tolist()
        total = reason["base"] + sum(part["part"] for part in reason["parts"]) + reason["rest"]
        assert total == pytest.approx(reason["score"], abs=1e-4)
    if isinstance(model, RatingModel):
        assert reason["rest"] == pytest.approx(0, abs=1e-4)


def test_explanations_of_a_known_user(client: httpx.Client, model: Any) -> None:
    user, item = model.users_.ids[0].item(), model.items_.ids[4].item()
    [reason] = ask(client, "/explain", user=user, items=[item])["explanations"]
    why = model.explain(user, item)
    same([part["part"] for part in reason["parts"]], why.parts[:10])


def test_predictions_equal_the_model(client: httpx.Client, model: Any) -> None:
    users, items = model.users_.ids[:4].tolist(), model.items_.ids[3:7].tolist()
    found = ask(client, "/predict", users=users, items=items, level=0.5)["predictions"]
    mean, std = model.predict(users, items, return_std=True)
    low, high = model.predict_interval(users, items, 0.5)
    for name, wanted in (("mean", mean), ("std", std), ("low", low), ("high", high)):
        same([row[name] for row in found], wanted)
    rows = history(model, [0])
    found = ask(client, "/predict", history=rows, items=items)["predictions"]
    same([row["mean"] for row in found], model.predict(folded(model, [0]), items))


def test_similar_equals_the_model(client: httpx.Client, model: Any) -> None:
    for what, known, ways in (
        ("item", model.items_, model.similar_items),
        ("user", model.users_, model.similar_users),
    ):
        one = known.ids[5].item()
        found = ask(client, "/similar", **{what: one}, n=4)["similar"]
        top = ways(one, 4)
        assert [row[what] for row in found] == top.items.tolist()
        same([row["similarity"] for row in found], top.scores)
        same([row["std"] for row in found], top.stds)


def test_each_user_gets_of_their_own_candidates(client: httpx.Client, model: Any) -> None:
    users, items = model.users_.ids[:2].tolist(), model.items_.ids[:6].tolist()
    lists = [items[:2], items[4:]]
    options = {"exclude_seen": False, "n": 5}
    found = ask(client, "/recommend", users=users, candidates=lists, **options)["users"]
    assert [{one["item"] for one in row["items"]} for row in found] == [*map(set, lists)]
    refused = ask(client, "/recommend", 422, users=users, candidates=[items[:2]], **options)
    assert "1 lists for 2 users" in refused["errors"]["request"]
    unknown = 10**9 if isinstance(items[0], int) else "nobody"
    refused = ask(client, "/recommend", 404, users=users, candidates=[items, [unknown]], **options)
    assert [*refused["errors"]] == ["candidates"]


def test_unknown_users_are_skipped_and_named(client: httpx.Client, model: Any) -> None:
    users = model.users_.ids[:2].tolist()
    nobody = 10**9 if isinstance(users[0], int) else "nobody"
    asked = {"users": [users[0], nobody, users[1]], "n": 2, "unknown": "skip"}
    found = ask(client, "/recommend", **asked)
    assert [row["user"] for row in found["users"]] == users
    assert found["skipped"] == [nobody]
    assert found["users"] == ask(client, "/recommend", users=users, n=2)["users"]
    assert ask(client, "/recommend", **{**asked, "users": [nobody]})["users"] == []


@pytest.mark.parametrize("kind", ["numbers"], indirect=True)
def test_rules_need_a_table_of_items(client: httpx.Client, model: Any) -> None:
    user = model.users_.ids[0].item()
    for rule in ({"where": {"kind": "a"}}, {"boost": {"kind": 1}}, {"quota": {"kind": 1}}):
        refused = ask(client, "/recommend", 422, users=[user], **rule)
        assert "the service was started without" in refused["errors"]["request"]
    top = model.recommend(user, 6, diversity=0.5)
    found = ask(client, "/recommend", users=[user], n=6, diversity=0.5)["users"][0]["items"]
    assert [one["item"] for one in found] == top.items.tolist()


def test_rules_equal_the_model(folder: Path, tmp_path: Path) -> None:
    path = saved("numbers", folder)
    model, rng = load(path), np.random.default_rng(1)
    ids = model.items_.ids
    columns = {"id": ids, "kind": np.array(["a", "b", "c"])[rng.integers(0, 3, len(ids))]}
    columns["age"] = rng.integers(0, 9, len(ids))
    table = tmp_path / "items.csv"
    pl.DataFrame(columns).write_csv(table)
    rules: dict[str, Any] = {
        "where": {"kind": {"not": "c"}, "age": {"min": 1}},
        "boost": {"age": 0.1, "kind": {"b": -0.2}},
        "quota": {"kind": {"a": 2}},
        "diversity": 0.3,
    }
    users, keys = model.users_.ids[:3].tolist(), [3, 5]
    with client_of(path, items=table) as client:
        for some in (users, users[:1]):
            found = ask(client, "/recommend", users=some, n=5, **rules)["users"]
            top = model.recommend(some, 5, items=columns, **rules)
            items = [[one["item"] for one in row["items"]] for row in found]
            wanted = [row[row >= 0].tolist() for row in top.items]
            assert items == wanted
        answer = ask(client, "/fold-in", history=history(model, keys), n=4, **rules)
        wanted = model.recommend(folded(model, keys), 4, items=columns, **rules).items.tolist()
        assert [one["item"] for one in answer["items"]] == wanted
        assert client.get("/model").json()["columns"] == ["kind", "age"]
        for rule, says in [
            ({"where": {"colour": "red"}}, "no column 'colour', only kind, age"),
            ({"where": {"age": {"above": 3}}}, ""),
            ({"where": {"age": "old"}}, "has numbers, not 'old'"),
            ({"quota": {"kind": -1}}, ""),
            ({"boost": {"kind": 1}}, "boost: the column 'kind' has text"),
            ({"diversity": -1}, ""),
        ]:
            refused = ask(client, "/recommend", 422, users=users, **rule)["errors"]
            assert says in " ".join(refused.values())
            assert str(tmp_path) not in str(refused)
        table.write_text("id,kind\n" + "".join(f"{item},z\n" for item in ids.tolist()))
        wait_for(lambda: client.get("/model").json()["columns"] == ["kind"])
        found = ask(client, "/recommend", users=users, where={"kind": "z"})["users"]
        assert len(found[0]["items"]) == 10


def test_edge_cases_of_requests(client: httpx.Client, model: Any) -> None:
    ids, user = model.items_.ids.tolist(), model.users_.ids[0].item()
    assert len(ask(client, "/fold-in", history=[], n=1000)["items"]) == len(ids)  # n is too large
    everything = history(model, range(len(ids)))
    assert ask(client, "/fold-in", history=everything)["items"] == []  # nothing is left
    assert len(ask(client, "/fold-in", history=everything, exclude_seen=False)["items"]) == 10
    assert ask(client, "/recommend", users=[]) == {"users": []}
    assert ask(client, "/recommend", users=[user], candidates=[]) == {
        "users": [{"user": user, "items": []}]
    }
    assert ask(client, "/predict", users=[user], items=[]) == {"predictions": []}
    assert ask(client, "/explain", user=user, items=[]) == {"explanations": []}
    assert len(ask(client, "/similar", item=ids[0], n=1000)["similar"]) == len(ids) - 1
    stranger = "nobody" if isinstance(user, str) else 10**18
    found = ask(client, "/recommend", users=[stranger], unknown="prior", n=3)["users"][0]
    assert len(found["items"]) == 3
    assert "there is no user" in str(ask(client, "/recommend", 404, users=[stranger]))
    other = 5 if isinstance(user, str) else "5"  # an id of the other kind
    assert "ids are" in str(ask(client, "/recommend", 404, users=[other]))
    assert "not both" in str(ask(client, "/recommend", 422, users=[user, other]))
    mixed = [{"item": ids[0], "rating": 1}, {"item": 5 if isinstance(ids[0], str) else "5"}]
    assert "not both" in str(ask(client, "/fold-in", 422, history=mixed))
    twice = history(model, [1, 1])
    assert "history: there is an item twice" in str(ask(client, "/fold-in", 422, history=twice))
    assert "one of the two" in str(ask(client, "/similar", 422))
    assert "one of the two" in str(ask(client, "/predict", 422, items=ids[:1]))
    assert "one of the two" in str(ask(client, "/explain", 422, items=ids[:1]))
    assert "2 users and 3 items" in str(
        ask(client, "/predict", 422, users=[user, user], items=ids[:3])
    )


def test_unknown_id_is_reported_for_its_field(client: httpx.Client, model: Any) -> None:
    user, item = model.users_.ids[0].item(), model.items_.ids[0].item()
    strange_user = "nobody" if isinstance(user, str) else 10**18
    strange_item = "nothing" if isinstance(item, str) else 10**18
    other = 5 if isinstance(item, str) else "5"  # an id of the other kind
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("users", "/recommend", {"users": [user, strange_user]}),
        ("candidates", "/recommend", {"users": [user], "candidates": [item, strange_item]}),
        ("exclude", "/recommend", {"users": [user], "exclude": [other]}),
        ("history", "/fold-in", {"history": [{"item": strange_item, "rating": 1}]}),
        ("users", "/predict", {"users": [strange_user], "items": [item]}),
        ("items", "/predict", {"users": [user], "items": [strange_item]}),
        ("items", "/predict", {"users": [user], "items": [other], "unknown": "prior"}),
        ("item", "/similar", {"item": strange_item}),
        ("user", "/similar", {"user": strange_user}),
        ("user", "/explain", {"user": strange_user, "items": [item]}),
        ("items", "/explain", {"user": user, "items": [strange_item]}),
    ]
    for field, path, body in asked:
        errors = ask(client, path, 404, **body)["errors"]
        assert list(errors) == [field], (path, body)
        sentence = errors[field]
        assert ("there is no " in sentence) != ("the ids are" in sentence)
        may = "unknown" in path or (
            path in ("/recommend", "/predict") and "there is no" in sentence
        )
        assert ('with "unknown": "prior"' in sentence) == (may and field in ("users", "items"))
        assert "=" not in sentence  # as in Python


def test_exploration_is_random_unless_a_seed_is_given(client: httpx.Client, model: Any) -> None:
    users = model.users_.ids[:20].tolist()
    asked = {"users": users, "n": 5, "explore": "thompson"}
    assert ask(client, "/recommend", **asked) != ask(client, "/recommend", **asked)
    seeded = asked | {"seed": 3}
    assert ask(client, "/recommend", **seeded) == ask(client, "/recommend", **seeded)
    assert ask(client, "/recommend", **seeded) != ask(client, "/recommend", **asked, seed=4)
    alone = {"users": users[:1], "n": 30, "explore": "thompson", "exclude_seen": False}
    assert ask(client, "/recommend", **alone) != ask(client, "/recommend", **alone)


def test_scores_are_within_the_range(client: httpx.Client, model: Any) -> None:
    if not isinstance(model, RatingModel):
        return
    users = model.users_.ids.tolist()
    found = ask(client, "/recommend", users=users, n=40, exclude_seen=False, level=0.9)["users"]
    rows = [row for one in found for row in one["items"]]
    assert all(1 <= row["score"] <= 5 for row in rows)
    assert any(row["score"] == 5 for row in rows)  # some are beyond it before they are shown
    assert [row["score"] for row in rows] == pytest.approx([row["mean"] for row in rows], abs=2e-6)


@pytest.mark.parametrize("rating", [-1, 0.5, 5.5, 1e300, None])
def test_invalid_ratings_are_refused(
    client: httpx.Client, model: Any, kind: str, rating: float | None
) -> None:
    row = {"item": model.items_.ids[0].item(), "rating": rating}
    if kind == "events" and rating is None:
        return  # taken once
    said = ask(client, "/fold-in", 422, history=[row])["errors"]["request"]
    assert ("is a count" if kind == "events" else "from 1 to 5") in said


def test_search_by_title(films: httpx.Client) -> None:
    everything = films.get("/items", params={"n": 1000}).json()["items"]
    counts = [row["ratings"] for row in everything]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == demo.USERS * demo.EACH
    for words in ("penguin comedy", "COMEDY Penguin", "enguin"):
        found = films.get("/items", params={"q": words, "n": 1000}).json()["items"]
        wanted = [row for row in everything if "Penguin" in row["title"]]
        assert found == wanted
    assert films.get("/items", params={"q": "no such film"}).json() == {"items": []}


def test_search_by_id_without_titles(client: httpx.Client, model: Any) -> None:
    one = model.items_.ids[3].item()
    found = client.get("/items", params={"q": str(one), "n": 1000}).json()["items"]
    assert one in [row["item"] for row in found]
    assert all(str(one) in str(row["item"]) for row in found)


def test_model_health_and_metrics(client: httpx.Client, model: Any) -> None:
    about = client.get("/model").json()
    assert (about["kind"], about["users"]) == (type(model).__name__, len(model.users_))
    assert client.get("/health").json() | {"model": 0} == {
        "status": "ok",
        "model": 0,
        "swaps": 0,
        "refused": None,
    }
    client.get("/nowhere")
    text = client.get("/metrics").text
    assert 'svmp_requests_total{path="/health",status="200"} 1.0' in text
    assert 'svmp_requests_total{path="other",status="404"} 1.0' in text
    assert f'svmp_model_size{{of="items"}} {len(model.items_)}.0' in text
