"""Which updater serves a variable: every kind of updater makes an offer, or says why it makes none.

`UPDATERS` lists them in order of preference, for all methods and networks.
"""

from __future__ import annotations

from collections.abc import Callable

from svmp.inference.updaters.block_sums import block_updater
from svmp.inference.updaters.categorical import TopicUpdater
from svmp.inference.updaters.groups import DocumentsUpdater, GroupsUpdater
from svmp.inference.updaters.joint import JointUpdater
from svmp.inference.updaters.joint_block import JointBlockUpdater
from svmp.inference.updaters.linear_block import find_blocks
from svmp.inference.updaters.memoized import MemoizedTopics, MemoizedUpdater
from svmp.inference.updaters.multilinear import MultilinearUpdater
from svmp.inference.updaters.setup import Setup
from svmp.inference.updaters.updater import Updater
from svmp.kernels.categorical.topics_sums import Topics
from svmp.kernels.multilinear.updater import Multilinear
from svmp.network.conditional import Conditional
from svmp.network.partly_known import PartlyKnown

FEW_ROWS = 1 << 17
"""Most rows for which plain code is used where each element is the whole mean of one row. It takes
half as long as loops, which do more for each key, but these share longer tables among threads."""

Offer = Updater | str
"""An updater, or the reason why it does not serve the variable."""


def chain(setup: Setup, name: str) -> Offer:
    """Offer the updater of a chain: all rows of a sequence together."""
    if name not in setup.network.chains:
        return "it is not a chain"
    grouping = setup.method.grouping(setup.network)
    if grouping is not None and len(grouping.locals) > 1:
        return "it is optimised with the other variables of a group"
    return setup.chain(name)


def documents(setup: Setup, name: str) -> Offer:
    """Offer the compiled updater of the topics of drawn documents."""
    grouping = setup.method.grouping(setup.network)
    if grouping is None or name not in grouping.group:
        return "it belongs to no group that is drawn"
    words = next((u for n, u in setup.implicit.items() if n in grouping.group), None)
    if words is None or not isinstance(words.loops, Topics):
        return "its groups are not documents of words"
    weights = words.loops.weights
    own = weights is not None and weights.name in grouping.group
    shares = setup.plain(weights.name) if weights is not None and own else None
    return DocumentsUpdater(setup.network, grouping, shares, words, words.loops)


def groups(setup: Setup, name: str) -> Offer:
    """Offer the updater of the variables of drawn groups."""
    network, grouping = setup.network, setup.method.grouping(setup.network)
    if grouping is None or name not in grouping.group:
        return "it belongs to no group that is drawn"
    chains = {local: setup.chain(local) for local in grouping.locals if local in network.chains}
    variables = {n: chains[n].plain if n in chains else setup.plain(n) for n in grouping.locals}
    return GroupsUpdater(setup.network, grouping, variables, chains)


def memoized(setup: Setup, name: str) -> Offer:
    """Offer the updater of a global variable from sums that are kept by part."""
    network, division = setup.network, setup.division
    if division is None:
        return "the method keeps no sums"
    if not any(division.parts[0].memoizes(edge) for edge in network.edges[name]):
        return "its children are in no part"
    compiled = topics(setup, name)
    if isinstance(compiled, TopicUpdater):
        return MemoizedTopics(network, compiled, division)
    return MemoizedUpdater(network, setup.plain(name), division)


def joint_block(setup: Setup, name: str) -> Offer:
    """Offer the joint q of a block of variables."""
    block = setup.joined.get(name)
    return "it is in no joint block" if block is None else JointBlockUpdater(block)


def linear_block(setup: Setup, name: str) -> Offer:
    """Offer the joint solution of intercepts, slopes and group effects."""
    if not (setup.method.joint and setup.method.unit_steps):
        return "the method updates one variable after the other"
    block = find_blocks(setup.network, setup.apart, frozenset(setup.joined)).get(name)
    if block is None:
        return "it is in no linear block"
    return block_updater(block, {n: setup.term(n) for n in block.starts})


def implicit(setup: Setup, name: str) -> Offer:
    """Offer the updater of a local Categorical that is not stored."""
    if name in setup.implicit:
        return setup.implicit[name]
    if name in setup.stored:
        return "it starts at given values, and so is stored"
    if isinstance(setup.network.hidden[name].family, PartlyKnown):
        return "some of its values are observed, and so it is stored"
    if name in setup.network.learned:
        return "earlier rows have taught something about it, and so it is stored"
    if not setup.method.shares_rows:
        return "elements draw rows of their own, so that its q is stored"
    return "no loops for what it chooses among: rows differ in more than their component"


def topics(setup: Setup, name: str) -> Offer:
    """Offer the compiled updater of topics, from sums over the words."""
    edges = setup.network.edges[name]
    words = setup.implicit_of(edges[0].conditional.variable.name) if edges else None
    if words is None or not isinstance(words.loops, Topics):
        return "it has no topics of words as children"
    if not words.loops.serves(setup.network, name) or setup.policy.statistics:
        return "it is not the probabilities of the words of a topic"
    return TopicUpdater(setup.network, name, words, words.loops, setup.term(name))


def multilinear(setup: Setup, name: str) -> Offer:
    """Offer compiled loops over rows for a variable in a mean or a logit."""
    network, method = setup.network, setup.method
    edges, local = network.edges[name], name in network.locals
    if setup.policy.statistics:
        return "the step policy asks for statistics of the gradient"
    if method.over is not None:
        return "groups are drawn"
    if len(edges) != 1:
        return f"it has {len(edges)} tables of children, and the loops serve one"
    conditional = edges[0].conditional
    table = conditional.variable.name
    if table in setup.summarised:
        return f"the sums over the rows of '{table}' suffice"
    known = conditional.selector is None and isinstance(conditional.factor, Multilinear.FACTORS)
    if known and edges[0].slot is not conditional.linear:
        return f"it is not a term of the mean of '{table}'"
    loops = setup.loops.get(table)
    if table in setup.joint_tables:
        return f"no loops for the rows of '{table}', which read a joint block"
    if loops is None:
        return f"no loops for the rows of '{table}': {Multilinear.why_not(conditional)}"
    if local and not method.shares_rows:
        return "each of its elements belongs to a row, and elements draw rows of their own"
    if local and method.reads_all(1) and is_mean_of_few(conditional):
        return f"each row of '{table}' has one of its elements as its mean: no sums over rows"
    joint = method.joint and not local
    return MultilinearUpdater(network, name, loops, joint, setup.term(name))


def is_mean_of_few(conditional: Conditional) -> bool:
    """Whether a mean is one variable and nothing else, in a table that one thread reads quickly."""
    if conditional.linear is None or conditional.linear.single is None:
        return False
    return not conditional.factor.convex and conditional.variable.size <= FEW_ROWS


def joint(setup: Setup, name: str) -> Offer:
    """Offer the joint solution of the elements in one sum of a mean."""
    if setup.policy.statistics:
        return "the step policy asks for statistics of the gradient"
    if not setup.method.joint:
        return "the method updates one element after the other"
    updater = JointUpdater.of(setup.network, setup.plain(name))
    return updater or "its elements do not stand in one sum of a mean"


def plain(setup: Setup, name: str) -> Offer:
    """Offer the plain updater, which serves every variable."""
    return setup.plain(name)


UPDATERS: tuple[Callable[[Setup, str], Offer], ...] = (
    chain,
    joint_block,
    documents,
    groups,
    memoized,
    linear_block,
    implicit,
    topics,
    multilinear,
    joint,
    plain,
)
"""The updaters, in order of preference: the first that serves a variable is used."""
