"""What may be asked, and what is answered: the bodies of requests and of answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

LARGEST = 2**63 - 1
Id = (
    Annotated[int, Field(strict=True, ge=-LARGEST - 1, le=LARGEST)]
    | Annotated[str, Field(strict=True, max_length=1000)]
)
Count = Annotated[int, Field(strict=True, ge=1, le=1000, description="How many, at most.")]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Level = Annotated[float, Field(strict=True, gt=0, lt=1, description="As 0.9, for intervals.")]


def of_one_kind(ids: list[int | str]) -> list[int | str]:
    """Refuse strings among numbers, which NumPy would take for strings too."""
    if len(set(map(type, ids))) > 1:
        raise PydanticCustomError("ids", "ids are whole numbers or strings, not both")
    return ids


Ids = Annotated[list[Id], AfterValidator(of_one_kind)]


class RequestBody(BaseModel):
    """Whatever a request has, and nothing else."""

    model_config = ConfigDict(extra="forbid")


class Rated(RequestBody):
    """An item, and what somebody gave it: a rating, or how often it was taken."""

    item: Id
    rating: Number | None = None


def about_one_kind(history: list[Rated]) -> list[Rated]:
    """Refuse the same in a history."""
    of_one_kind([rated.item for rated in history])
    return history


History = Annotated[
    list[Rated],
    AfterValidator(about_one_kind),
    Field(description="What somebody has rated, or taken."),
]


class Ranking(RequestBody):
    """How items are ranked."""

    n: Count = 10
    exclude_seen: Annotated[bool, Field(description="Leave out what they know.")] = True
    candidates: Annotated[Ids | None, Field(description="The only items to choose from.")] = None
    exclude: Annotated[Ids | None, Field(description="Items to leave out.")] = None
    explore: Literal["thompson", "ucb"] | None = None
    width: Annotated[Number, Field(ge=0, le=1000)] | None = None
    seed: Annotated[
        int | None,
        Field(
            strict=True, ge=0, le=LARGEST, description="The same draws each time; else new ones."
        ),
    ] = None
    level: Level | None = None


class Recommend(Ranking):
    """Items for users of the model."""

    users: Ids
    unknown: Literal["error", "prior"] = "error"


class FoldIn(Ranking):
    """Items for somebody who is not in the model, by what they have rated."""

    history: History


class Predict(RequestBody):
    """Ratings of items: by users, pair by pair or one for all, or by somebody with a history."""

    items: Ids
    users: Ids | None = None
    history: History | None = None
    level: Level | None = None
    unknown: Literal["error", "prior"] = "error"


class Similar(RequestBody):
    """What is like an item, or who is like a user."""

    item: Id | None = None
    user: Id | None = None
    n: Count = 10


class Explain(RequestBody):
    """Why items get the scores that they get, from a user or from somebody with a history."""

    items: Ids
    user: Id | None = None
    history: History | None = None


# --- answers --------------------------------------------------------------------------------


class Scored(BaseModel):
    """An item with its expected score and the standard deviation of that under q.

    Where a level was asked for: the expected rating, or probability, and an interval around it.
    """

    item: int | str
    title: str | None = None
    score: float
    std: float
    mean: float | None = None
    low: float | None = None
    high: float | None = None


class UserItems(BaseModel):
    """The best items for one user, best first."""

    user: int | str
    items: list[Scored]


class Recommended(BaseModel):
    """The best items for each user, in the order in which they were asked for."""

    users: list[UserItems]


class Folded(BaseModel):
    """The best items, best first."""

    items: list[Scored]


class Prediction(BaseModel):
    """An expected rating, or probability, its standard deviation, and maybe an interval."""

    mean: float
    std: float
    low: float | None = None
    high: float | None = None


class Predicted(BaseModel):
    """Predictions, in the order in which they were asked for."""

    predictions: list[Prediction]


class Neighbour(BaseModel):
    """An item or a user, how similar, and the standard deviation of that."""

    item: int | str | None = None
    user: int | str | None = None
    title: str | None = None
    similarity: float
    std: float


class Neighbours(BaseModel):
    """The most similar first."""

    similar: list[Neighbour]


class Contribution(BaseModel):
    """What one rating adds to a score."""

    item: int | str
    title: str | None = None
    rating: float
    part: float


class Reason(BaseModel):
    """A score as base + sum of all parts + rest; the greatest ten parts, greatest first."""

    item: int | str
    title: str | None = None
    score: float
    base: float
    parts: list[Contribution]
    rest: float


class Explained(BaseModel):
    """A reason for each item."""

    explanations: list[Reason]


class ItemList(BaseModel):
    """Items that were found, those with the most ratings first."""

    items: list[CatalogueItem]


class CatalogueItem(BaseModel):
    """An item by id and title, and how many have rated it."""

    item: int | str
    title: str | None = None
    ratings: int


class ModelInfo(BaseModel):
    """The model in use."""

    kind: Literal["RatingModel", "EventModel"]
    users: int
    items: int
    range: Annotated[list[float], Field(min_length=2, max_length=2)] | None = Field(
        description="Least and greatest rating."
    )
    loaded: str = Field(description="When it was taken over, UTC.")
    name: str


class Health(BaseModel):
    """Whether it answers, and what became of model files since it started."""

    status: Literal["ok"]
    model: ModelInfo
    swaps: int
    refused: str | None = Field(description="Why the file that is there now was not taken over.")


class ErrorBody(BaseModel):
    """What is wrong: a sentence for each field, or for the whole request."""

    errors: dict[str, str]
