"""The posterior of one variable as users read it: arrays with the model's dims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array, Family
from svmp.inference.seeds import Seed, generator
from svmp.network.validation import shown


@dataclass(frozen=True, eq=False)
class Posterior:
    """The approximate posterior of one hidden variable.

    Attributes
    ----------
    name, dims, family
        As in the model.
    plate
        Sizes of the plate axes.
    natural
        Natural parameters, (elements, size).

    Its standard parameters are attributes too: `fit["tau"].alpha`. The natural parameters are
    read-only; every other array is a new one, which the caller may change.
    """

    name: str
    dims: tuple[str, ...]
    plate: tuple[int, ...]
    family: Family
    natural: Array

    def __post_init__(self) -> None:
        own = self.natural.view()
        own.flags.writeable = False
        object.__setattr__(self, "natural", own)

    @property
    def parameters(self) -> dict[str, Array]:
        """The standard parameters, with the model's dims."""
        return {k: self._shaped(v) for k, v in self.family.standard(self.natural).items()}

    @property
    def mean(self) -> Array:
        """E[x]; for a Categorical its probabilities, on a last axis of their own."""
        return self._shaped(self.family.mean(self.natural))

    @property
    def var(self) -> Array:
        """Variance of each entry of x."""
        return self._shaped(self.family.var(self.natural))

    @property
    def std(self) -> Array:
        """Standard deviation of each entry of x."""
        return np.asarray(np.sqrt(self.var))

    @property
    def moments(self) -> Array:
        """Expected sufficient statistics, on a last axis of their own."""
        return self._shaped(self.family.moments(self.natural))

    def entropy(self) -> Array:
        """Entropy of each element, in nats."""
        return self._shaped(self.family.entropy(self.natural))

    def draw(self, size: int = 1, seed: Seed = None) -> Array:
        """Return independent draws from q, with a new first axis.

        Parameters
        ----------
        size
            Number of draws.
        seed
            By default new random numbers in each call. A whole number gives the same draws each
            time; variables of different names have different random numbers under the same seed.
            A `numpy.random.Generator` is used as it is.
        """
        if not isinstance(size, Integral) or isinstance(size, bool) or size < 0:
            raise ModelError(f"size must be a whole number of at least 0, not {shown(size)}")
        draws = self.family.draw(self.natural, generator(seed, self.name), int(size))
        return draws.reshape((size, *self.plate, *draws.shape[2:]))

    def _shaped(self, values: Array) -> Array:
        return np.array(values).reshape((*self.plate, *np.shape(values)[1:]))

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_") or name not in self.family.parameters:
            raise AttributeError(f"a posterior has no attribute '{name}'")
        return self.parameters[name]

    def __repr__(self) -> str:
        return f"<q({self.name}): {type(self.family).__name__}, dims {self.dims}>"


@dataclass(frozen=True, eq=False)
class Posteriors(Mapping[str, Posterior]):
    """Posteriors by variable, some of which are computed on first access.

    Attributes
    ----------
    names
        The hidden variables, as declared.
    stored
        The posteriors of stored variables.
    make
        Computes the posterior of any other variable.
    """

    names: list[str]
    stored: Mapping[str, Posterior]
    make: Callable[[str], Posterior]
    _made: dict[str, Posterior] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Posterior:
        if name in self.stored:
            return self.stored[name]
        if name not in self.names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self.make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
