"""Fits on Dask workers have the same bits as a fit here, whatever happens to the workers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.errors import ImproperError
from tests.parts.networks import CASES, Case, codes

distributed = pytest.importorskip("distributed", reason="Dask distributed is not installed")

from svmp.parts.workers import Workers  # noqa: E402
from tests.parts.faults import PHASES, Faults  # noqa: E402

NETWORKS = ("factorization", "topics", "mixture", "schools")
SWEEPS = 4


@contextmanager
def cluster(workers: int, threads: int = 1) -> Iterator[Any]:
    """A client of new worker processes."""
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=threads, dashboard_address=":0"
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster(2) as client:
        yield client


def same_bits(one: svmp.Fit, other: svmp.Fit) -> bool:
    return one.bound_terms == other.bound_terms and all(
        np.array_equal(one[name].natural, other[name].natural) for name in one.posteriors
    )


def fit(case: Case, **options: Any) -> svmp.Fit:
    return svmp.fit(case.divided(groups=len(case.parts)), max_sweeps=SWEEPS, **options)


@pytest.mark.parametrize("name", NETWORKS)
def test_two_workers_give_the_same_bits_as_none(name: str, client: Any) -> None:
    case = CASES[name]()
    assert same_bits(fit(case), fit(case, client=client))


@pytest.mark.parametrize("name", NETWORKS)
def test_parts_put_together_on_workers_give_the_same_bits(name: str, client: Any) -> None:
    case = CASES[name]()
    options = {"init": case.init, "max_sweeps": SWEEPS, "tol": 0}
    divided = case.divided(groups=2)
    here = svmp.fit(divided, svmp.FullVB(), **options)
    assert same_bits(here, svmp.fit(divided, svmp.FullVB(), client=client, **options))


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "threads"), [(1, 1), (4, 1), (1, 2), (2, 2)])
def test_number_of_workers_and_threads_changes_no_bit(workers: int, threads: int) -> None:
    with cluster(workers, threads) as client:
        for name in NETWORKS:
            case = CASES[name]()
            assert same_bits(fit(case), fit(case, client=client)), name


def test_one_part_and_parts_without_rows(client: Any) -> None:
    case = CASES["factorization"]()
    empty = {column: values[:0] for column, values in case.parts[0].items()}
    for parts in (case.parts[:1], [case.parts[0], empty, case.parts[1]]):
        divided = svmp.Parts(case.declare, parts, groups=len(parts))
        here = svmp.fit(divided, max_sweeps=2)
        assert same_bits(here, svmp.fit(divided, max_sweeps=2, client=client))


def test_nothing_remains_on_the_cluster(client: Any) -> None:
    from svmp.parts import cache

    fit(CASES["factorization"](), client=client)

    def tasks(dask_scheduler: Any) -> int:
        return len(dask_scheduler.tasks)

    def parts() -> int:
        return len(cache._parts)

    client.run_on_scheduler(no_tasks_left)
    assert client.run_on_scheduler(tasks) == 0
    assert set(client.run(parts).values()) == {0}


async def no_tasks_left(dask_scheduler: Any) -> None:
    """Wait until released tasks are forgotten."""
    import asyncio

    for _ in range(200):
        if not dask_scheduler.tasks:
            return
        await asyncio.sleep(0.05)


async def no_workers_left(dask_scheduler: Any) -> None:
    """Wait until all workers have gone."""
    import asyncio

    for _ in range(600):
        if not dask_scheduler.workers:
            return
        await asyncio.sleep(0.05)


def test_tasks_are_named(client: Any) -> None:
    names: set[str] = set()

    def note(_: Any) -> None:
        names.update(client.run_on_scheduler(prefixes))

    def prefixes(dask_scheduler: Any) -> list[str]:
        return list(dask_scheduler.task_prefixes)

    fit(CASES["factorization"](), client=client, watch=note)
    assert {"svmp-visit", "svmp-bound", "svmp-context", "svmp-q", "svmp-rows"} <= names


def test_bytes_and_groups_are_counted(client: Any) -> None:
    workers = Workers.of(client)
    fit(CASES["factorization"](), client=workers)
    assert workers.transfer.bytes_sent > 0
    assert workers.transfer.bytes_received > 0
    assert workers.note.startswith("groups 4/4   moved")


@pytest.mark.parametrize("name", ["factorization with biases", "topics"])
def test_own_q_is_sent_once_and_fetched_now_and_then(name: str, client: Any) -> None:
    case, options = CASES[name](), {"init": CASES[name]().init, "max_sweeps": 11, "tol": 0}
    moved: list[tuple[int, int]] = []
    workers = Workers.of(client)

    def note(row: dict[str, float]) -> None:
        moved.append((workers.transfer.bytes_sent, workers.transfer.bytes_received))

    parts = case.divided(groups=len(case.parts))
    here = svmp.fit(parts, svmp.FullVB(), **options)
    there = svmp.fit(parts, svmp.FullVB(), client=workers, watch=note, bound_every=1, **options)
    assert same_bits(here, there)
    own = sum(here[n].natural.nbytes for n in case.own if n != "z")
    sent, received = np.diff(moved, axis=0).T
    assert (sent[1:] < sent[1:].min() + own).all()
    assert (received[1:] >= received[1:].min() + own).sum() == 1  # after eight visits


def test_own_q_that_was_fetched_is_sent_again_when_it_is_lost(client: Any) -> None:
    case, workers = CASES["factorization with biases"](), Workers.of(client)
    options = {"init": case.init, "max_sweeps": 11, "tol": 0, "bound_every": 1}
    depths: list[int] = []

    def lose(row: dict[str, float]) -> None:
        if row["iteration"] in (3, 8, 10):  # before, at and after fetching
            (left,) = [some for some in workers._left if some.futures]
            depths.append(left.depth)
            left.release()

    parts = case.divided(groups=len(case.parts))
    here = svmp.fit(parts, svmp.FullVB(), **options)
    assert same_bits(here, svmp.fit(parts, svmp.FullVB(), client=workers, watch=lose, **options))
    assert depths == [3, 8, 2]


def test_all_parts_in_one_group_give_the_same_bits_on_a_worker(client: Any) -> None:
    case = CASES["factorization"]()
    for method in (svmp.FullVB(), svmp.Growing(1.0)):
        here = svmp.fit(case.divided(groups=1), method, max_sweeps=SWEEPS)
        assert same_bits(
            here, svmp.fit(case.divided(groups=1), method, max_sweeps=SWEEPS, client=client)
        )


def test_checkpoints_on_workers_resume_to_the_same_bits(client: Any, tmp_path: Path) -> None:
    case, path = CASES["factorization"](), tmp_path / "run.svmp"
    parts = case.divided(groups=len(case.parts))
    svmp.fit(parts, svmp.FullVB(), max_sweeps=3, tol=0, client=client, checkpoint=path, every=1)
    resumed = svmp.fit(parts, resume=path, max_sweeps=7, client=client)
    assert same_bits(svmp.fit(parts, svmp.FullVB(), max_sweeps=7, tol=0), resumed)


def test_errors_of_a_part_come_through_with_its_name(client: Any) -> None:
    case = CASES["factorization"]()
    parts = [*case.parts]
    parts[2] = {**parts[2], "rating": np.append(parts[2]["rating"][:-1], np.inf)}
    divided = svmp.Parts(case.declare, parts, groups=len(parts))
    with pytest.raises(svmp.ModelError) as here:
        svmp.fit(divided)
    with pytest.raises(svmp.ModelError, match="part 2") as there:
        svmp.fit(divided, client=client)
    assert str(there.value) == str(here.value)


def test_other_errors_of_declare_come_through(client: Any) -> None:
    def declare(part: Any) -> svmp.Model:
        raise FileNotFoundError("no such table")

    with pytest.raises(FileNotFoundError, match="no such table"):
        svmp.fit(svmp.Parts(declare, [np.zeros(3)]), client=client)


def test_improper_errors_survive_the_way_to_another_process() -> None:
    error = ImproperError("tau", (3,), "Gamma", np.array([1.0, -2.0]))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.variable, again.index) == (str(error), "tau", (3,))


def test_other_things_than_clients_are_refused() -> None:
    with pytest.raises(svmp.ModelError, match=r"client must be a dask.distributed.Client, not 3"):
        fit(CASES["factorization"](), client=3)


def rating_files(folder: Path, case: Case, count: int) -> list[Path]:
    """Write the ratings of a factorization to Parquet files."""
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    rows, paths = case.whole, []
    for part in range(count):
        mine = rows["user"] % count == part
        paths.append(folder / f"part-{part}.parquet")
        pq.write_table(pa.table({k: v[mine] for k, v in rows.items()}), paths[-1])
    return paths


def declare_ratings(part: Any) -> svmp.Model:
    ids, key = codes(part["user"])
    with svmp.Model(coords={"user": ids, "item": range(15), "factor": 2}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        svmp.Normal(
            "r",
            mu=svmp.dot(u.iloc[key], v[part["item"]]),
            tau=4,
            dims="row",
            observed=part["rating"],
        )
    return model


@pytest.mark.parametrize("damage", ["missing", pytest.param("cut short", marks=pytest.mark.slow)])
def test_a_damaged_file_is_named_and_the_fit_can_go_on(
    damage: str, client: Any, tmp_path: Path
) -> None:
    paths = rating_files(tmp_path, CASES["factorization"](), 8)
    whole, checkpoint = paths[5].read_bytes(), tmp_path / "run.svmp"

    def harm(row: dict[str, float]) -> None:
        if row["iteration"] == 2:
            paths[5].unlink() if damage == "missing" else paths[5].write_bytes(whole[:300])

    def divided() -> svmp.Parts:
        return svmp.Parts(declare_ratings, svmp.parquet(paths), memory=1, groups=2)

    options: dict[str, Any] = {"max_sweeps": 6, "tol": 0, "bound_every": 1}
    expected = svmp.fit(divided(), svmp.FullVB(), **options)
    with pytest.raises(svmp.FileError, match=r"part-5\.parquet"):
        svmp.fit(
            divided(), svmp.FullVB(), watch=harm, client=client, checkpoint=checkpoint, every=1,
            **options,
        )  # fmt: skip
    paths[5].write_bytes(whole)
    resumed = svmp.fit(divided(), resume=checkpoint, client=client, **options)
    assert same_bits(expected, resumed)


def test_a_worker_that_joins_and_one_that_leaves_change_no_bit() -> None:
    case = CASES["factorization"]()
    with cluster(1) as client:

        def change(row: dict[str, float]) -> None:
            if row["iteration"] == 1:
                client.cluster.scale(2)
                client.wait_for_workers(2)
            if row["iteration"] == 3:
                client.retire_workers([min(client.scheduler_info()["workers"])])

        options: dict[str, Any] = {"max_sweeps": 6, "tol": 0, "bound_every": 1}
        expected = svmp.fit(case.divided(groups=len(case.parts)), svmp.FullVB(), **options)
        found = svmp.fit(
            case.divided(groups=len(case.parts)),
            svmp.FullVB(),
            client=client,
            watch=change,
            **options,
        )
    assert same_bits(expected, found)


def test_workers_with_other_versions_are_refused() -> None:
    def pretend() -> None:
        from svmp.parts import versions

        versions.versions = lambda: {"svmp": "0.0.1", "numpy": "2.0.0"}  # type: ignore[assignment]

    with cluster(2) as client:
        odd = max(client.scheduler_info()["workers"])
        client.run(pretend, workers=[odd])
        with pytest.raises(svmp.SvmpError, match=f"{odd} has svmp 0.0.1 .*numpy 2.0.0 .here"):
            fit(CASES["factorization"](), client=client)


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[tuple[Any, Path]]:
    """A client of two workers that have faults, and the folder that has a file for each."""
    folder = tmp_path / "faults"
    folder.mkdir()
    with cluster(2) as client:
        client.register_plugin(Faults(str(folder)))
        yield client, folder
        (folder / "go-on").touch()


def have_two_workers(client: Any) -> None:
    """Wait for two workers; add one where a nanny has given its own up, as a busy machine does."""
    try:
        client.wait_for_workers(2, timeout=20)
    except TimeoutError:
        client.cluster.scale(len(client.cluster.worker_spec) + 1)
        client.wait_for_workers(2, timeout=120)


def forget_parts() -> None:
    """Forget the parts that a worker has in memory."""
    from svmp.parts.cache import forget

    forget("")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["factorization", "topics"])
def test_workers_killed_in_every_phase_change_no_bit(name: str, faulty: Any) -> None:
    client, folder = faulty
    case = CASES[name]()
    count = 0

    def kill(row: dict[str, float]) -> None:
        nonlocal count
        have_two_workers(client)
        phase = PHASES[count % len(PHASES)]
        if phase == "load":  # a nanny does not replace a worker that ends while it starts
            client.run(forget_parts)
        (folder / phase).touch()
        count += 1

    options: dict[str, Any] = {"max_sweeps": 30, "tol": 0, "bound_every": 1}
    expected = svmp.fit(case.divided(groups=len(case.parts)), svmp.FullVB(), **options)
    found = svmp.fit(
        case.divided(groups=len(case.parts)), svmp.FullVB(), client=client, watch=kill, **options
    )
    assert same_bits(expected, found)
    killed = (folder / "killed").read_text().split()
    assert len(killed) >= 20
    assert set(killed) == set(PHASES)


@pytest.mark.slow
def test_a_worker_that_hangs_is_left_out(faulty: Any) -> None:
    client, folder = faulty
    case = CASES["factorization"]()
    expected = fit(case, client=client)  # compiles
    workers = Workers(client, deadline=5)
    (folder / "hang-own").touch()
    assert same_bits(expected, fit(case, client=workers))
    assert workers.transfer.retries == 1


@pytest.mark.slow
def test_workers_that_all_hang_end_the_fit_after_two_deadlines(faulty: Any) -> None:
    client, folder = faulty
    case = CASES["factorization"]()
    fit(case, client=client)  # compiles
    workers = Workers(client, deadline=4)
    (folder / "hang-own").touch()
    (folder / "hang-sums").touch()  # of the other worker
    with pytest.raises(svmp.SvmpError, match=r"within 4 seconds on any .* 2 times .* groups="):
        fit(case, client=workers)
    assert workers.transfer.retries <= 2


@pytest.mark.slow
def test_a_cluster_without_workers_fails_once_with_the_checkpoint_to_resume(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.svmp"
    case = CASES["factorization"]()
    options: dict[str, Any] = {"max_sweeps": 6, "tol": 0, "bound_every": 1}
    with cluster(1) as client:

        def leave(row: dict[str, float]) -> None:
            if row["iteration"] == 2:
                client.cluster.scale(0)
                client.run_on_scheduler(no_workers_left)

        workers = Workers(client, without_workers=1)
        with pytest.raises(svmp.SvmpError, match=r"no workers for 1 seconds.*run\.svmp"):
            svmp.fit(
                case.divided(groups=4), svmp.FullVB(), client=workers, watch=leave,
                checkpoint=path, every=1, **options,
            )  # fmt: skip
        assert workers.transfer.retries <= 1
    expected = svmp.fit(case.divided(groups=4), svmp.FullVB(), **options)
    assert same_bits(expected, svmp.fit(case.divided(groups=4), resume=path, **options))


def test_workers_without_a_group_are_told_about(client: Any) -> None:
    case = CASES["factorization"]()
    with pytest.warns(UserWarning, match=r"1 group, .* 1 of 2 workers .* give groups=4 to svmp"):
        svmp.fit(case.divided(), client=client, max_sweeps=1)
