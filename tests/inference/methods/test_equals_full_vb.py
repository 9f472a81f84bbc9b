"""With all children and unit steps the algorithms are full VB; in option (b), Jacobi updates."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import svmp
from svmp.network.network import Network
from tests.inference.tools import ALL, GALLERY, advance, assert_same, begin, factors, gallery
from tests.network.networks import KINDS, of_kind
from tests.network.tools import anywhere, copy, optimum, unknown
from tests.programs import optimise_locals

with_and_without = pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "plain"])
on_gallery = pytest.mark.parametrize("name", GALLERY)
every_kind = pytest.mark.parametrize("kind", KINDS)


def test_list_has_the_whole_gallery():
    assert sorted(GALLERY) == sorted(gallery())


def observations(network: Network) -> int:
    return sum(len(v.rows) for v in network.observed.values())


def everything(network: Network) -> dict[str, object]:
    """The algorithms, with settings that read all rows."""
    return {
        "Children": svmp.Children(ALL),
        "Children, one draw for all factors": svmp.Children(ALL, share_draw=True),
        "Children by name": svmp.Children(dict.fromkeys(network.hidden, ALL)),
        "Children by count": svmp.Children(lambda children: children),
        "Growing": svmp.Growing(first=1.0, joint=False),
        "Batch": svmp.Batch(observations(network)),
    }


@on_gallery
@with_and_without
def test_reading_everything_is_full_vb_on_the_gallery(name, kernels):
    network = Network(gallery()[name])
    full = advance(network, begin(network, kernels), svmp.FullVB())
    for method in everything(network).values():
        found = advance(network, begin(network, kernels), method)
        assert_same(found, full, 1e-10)


@pytest.mark.parametrize("name", ["04 paper", "04 biases", "09", "factors"])
def test_fit_that_reads_everything_is_full_vb(name):
    model = factors() if name == "factors" else gallery()[name]
    full = svmp.fit(model, svmp.FullVB(), max_sweeps=3, tol=0)
    for method in everything(Network(model)).values():
        unit = svmp.Constant(1.0)
        found = svmp.fit(model, method, steps=unit, max_sweeps=3, tol=0, bound_every=1)
        assert found.trace["iteration"][-1] == 3
        assert found.bound == pytest.approx(full.bound, rel=1e-10)
        assert found.trace["accesses"][-1] == full.trace["accesses"][-1]
        for variable in full.posteriors:
            assert found.mean(variable) == pytest.approx(full.mean(variable), rel=1e-8, abs=1e-10)


def assert_equal(network: Network, q, other) -> None:
    """Compare two q after optimising all local variables, some of which were perhaps not read."""
    q, other = copy(q), copy(other)
    for each in (q, other):
        optimise_locals(network, each)
    assert_same(q, other, 1e-9)


def on_networks(kind: str, check: Callable[[Network, int], None], count: int) -> None:
    @settings(max_examples=count, phases=[Phase.generate])  # shrinking takes minutes
    @given(of_kind(kind), st.integers(0, 2**16))
    def run(model: svmp.Model, seed: int) -> None:
        check(Network(model), seed)

    run()


@every_kind
def test_reading_every_child_is_full_vb_on_random_networks(kind):
    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        full = advance(network, copy(q), svmp.FullVB(), 2)
        for label, method in everything(network).items():
            if label != "Batch":
                assert_equal(network, advance(network, copy(q), method, 2), full)

    on_networks(kind, check, 10)


@every_kind
def test_batch_of_all_observations_is_full_vb_on_random_networks(kind):
    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        full = advance(network, copy(q), svmp.FullVB(), 2)
        found = advance(network, copy(q), svmp.Batch(observations(network)), 2)
        assert_equal(network, found, full)

    on_networks(kind, check, 10)


# --- option (b): all new values from the old ones -------------------------------------------


def jacobi(network: Network, q, steps: float = 1.0):
    """Move every global variable towards its optimum for the old q; local variables come first."""
    q = copy(q)
    optimise_locals(network, q)
    new = {n: optimum(network, q, n) for n in network.hidden if n not in network.locals}
    for name, natural in new.items():
        moves = unknown(network, name)
        q.natural[name][moves] += steps * (natural - q.natural[name])[moves]
        q.moments[name] = network.hidden[name].family.moments(q.natural[name])
    return q


@on_gallery
@with_and_without
def test_option_b_computes_every_new_value_from_the_old_ones(name, kernels):
    network = Network(gallery()[name])
    expected = jacobi(network, begin(network), 0.3)
    for method in (svmp.Children(ALL, option="b"), svmp.Batch(observations(network), option="b")):
        found = advance(network, begin(network, kernels), method, 1, svmp.Constant(0.3))
        assert_same(found, expected, 1e-9)


@every_kind
def test_option_b_is_jacobi_on_random_networks(kind):
    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        found = advance(network, copy(q), svmp.Children(ALL, option="b"), 1)
        assert_equal(network, found, jacobi(network, q))

    on_networks(kind, check, 10)


@every_kind
def test_option_b_does_not_depend_on_the_order_of_updates(kind):
    def check(network: Network, seed: int) -> None:
        q = anywhere(network, seed)
        method = svmp.Children(2, option="b")
        back = svmp.Children(2, option="b", order=[*network.locals, *reversed(
            [n for n in network.hidden if n not in network.locals])])  # fmt: skip
        one, other = (advance(network, copy(q), m, 1, svmp.Constant(0.5)) for m in (method, back))
        assert_same(one, other, 1e-12, [n for n in network.hidden if n not in network.locals])

    on_networks(kind, check, 6)
