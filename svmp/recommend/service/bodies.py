"""Schemas of the bodies of requests and responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

LARGEST = 2**63 - 1
Id = (
    Annotated[int, Field(strict=True, ge=-LARGEST - 1, le=LARGEST)]
    | Annotated[str, Field(strict=True, max_length=1000)]
)
Count = Annotated[int, Field(strict=True, ge=1, le=1000, description="Maximum number of results.")]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Level = Annotated[float, Field(strict=True, gt=0, lt=1, description="Level of intervals, as 0.9.")]


def of_one_kind(ids: list[int | str]) -> list[int | str]:
    """Raise if there are both strings and numbers, which NumPy would convert to strings."""
    if len(set(map(type, ids))) > 1:
        raise PydanticCustomError("ids", "ids are whole numbers or strings, not both")
    return ids


Ids = Annotated[list[Id], AfterValidator(of_one_kind)]


def is_nested(value: Any) -> str:
    """Return the branch of candidates, which errors do not name."""
    return (
        "[lists]" if isinstance(value, list) and value and isinstance(value[0], list) else "[ids]"
    )


Candidates = Annotated[
    Annotated[Ids, Tag("[ids]")] | Annotated[list[Ids], Tag("[lists]")], Discriminator(is_nested)
]


class RequestBody(BaseModel):
    """A request; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class Rated(RequestBody):
    """An item, with its rating or its number of events."""

    item: Id
    rating: Number | None = None


def about_one_kind(history: list[Rated]) -> list[Rated]:
    """Raise if a history has both strings and numbers as ids."""
    of_one_kind([rated.item for rated in history])
    return history


History = Annotated[
    list[Rated],
    AfterValidator(about_one_kind),
    Field(description="The ratings, or events, of somebody who is not in the model."),
]


Value = Annotated[str, Field(strict=True, max_length=1000)] | Number | bool
Name = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
Points = Annotated[Number, Field(ge=-1e9, le=1e9)]
Most = Annotated[int, Field(strict=True, ge=0, le=1000)]
COLUMNS = 20
"""Maximum number of columns of a condition, boost or quota; VALUES that of values of a column."""
VALUES = 200


class Limits(RequestBody):
    """The least and the greatest value of a column, and values that an item must not have."""

    min: Value | None = None
    max: Value | None = None
    not_: Annotated[
        Value | Annotated[list[Value], Field(max_length=VALUES)] | None, Field(alias="not")
    ] = None


Where = Annotated[
    dict[Name, Limits | Annotated[list[Value], Field(max_length=VALUES)] | Value],
    Field(
        max_length=COLUMNS,
        description="Conditions on what is known about items, by column: a value, a list of which "
        "an item has one, or an object of min, max and not.",
    ),
]
Boost = Annotated[
    dict[Name, Annotated[dict[Name, Points], Field(max_length=VALUES)] | Points],
    Field(
        max_length=COLUMNS,
        description="Points that are added before ranking, by column of numbers for each unit, or "
        "by column and value.",
    ),
]
Quota = Annotated[
    dict[Name, Annotated[dict[Name, Most], Field(max_length=VALUES)] | Most],
    Field(
        max_length=COLUMNS,
        description="Maximum number of items with the same value, by column, or by column and "
        "value.",
    ),
]


class Ranking(RequestBody):
    """Parameters of a ranking."""

    n: Count = 10
    exclude_seen: Annotated[bool, Field(description="Leave out items already rated.")] = True
    candidates: Annotated[
        Candidates | None,
        Field(description="The only items to rank: for all users, or a list for each."),
    ] = None
    exclude: Annotated[Ids | None, Field(description="Items to leave out.")] = None
    where: Where | None = None
    boost: Boost | None = None
    quota: Quota | None = None
    diversity: Annotated[
        Number,
        Field(ge=0, le=1e9, description="Points that an item loses after one just like it."),
    ] = 0.0
    explore: Literal["thompson", "ucb"] | None = None
    width: Annotated[Number, Field(ge=0, le=1000)] | None = None
    seed: Annotated[
        int | None,
        Field(strict=True, ge=0, le=LARGEST, description="Seed of the draws; by default random."),
    ] = None
    level: Level | None = None


class Recommend(Ranking):
    """Recommend items to users of the model."""

    users: Ids
    unknown: Annotated[
        Literal["error", "prior", "skip"],
        Field(description="Users that are not in the model: skip leaves them out and names them."),
    ] = "error"


class FoldIn(Ranking):
    """Recommend items to somebody who is not in the model, given their ratings."""

    candidates: Annotated[Ids | None, Field(description="The only items to rank.")] = None
    history: History


class Predict(RequestBody):
    """Predict ratings by users (one for each item, or one for all), or given a history."""

    items: Ids
    users: Ids | None = None
    history: History | None = None
    level: Level | None = None
    unknown: Literal["error", "prior"] = "error"


class Similar(RequestBody):
    """Find similar items, or similar users."""

    item: Id | None = None
    user: Id | None = None
    n: Count = 10


class Explain(RequestBody):
    """Explain the scores of items, for a user or given a history."""

    items: Ids
    user: Id | None = None
    history: History | None = None


# --- responses ------------------------------------------------------------------------------


class Scored(BaseModel):
    """An item with its expected score, and the standard deviation of the score under q.

    If the request has a level: the expected rating, or probability, and an interval around it.
    """

    item: int | str
    title: str | None = None
    score: float
    std: float
    unclipped: float | None = Field(
        default=None, description="The score before it was clipped to the range of ratings."
    )
    mean: float | None = None
    low: float | None = None
    high: float | None = None


class UserItems(BaseModel):
    """The best items for one user, best first."""

    user: int | str
    items: list[Scored]


class Recommended(BaseModel):
    """The best items for each user, in the order of the request."""

    users: list[UserItems]
    skipped: list[int | str] = Field(
        default=[], description="Users that are not in the model, if unknown is skip."
    )


class Folded(BaseModel):
    """The best items, best first."""

    items: list[Scored]


class Prediction(BaseModel):
    """An expected rating, or probability, its standard deviation, and an interval if requested."""

    mean: float
    std: float
    low: float | None = None
    high: float | None = None


class Predicted(BaseModel):
    """Predictions, in the order of the request."""

    predictions: list[Prediction]


class Neighbour(BaseModel):
    """A similar item or user, the similarity and its standard deviation."""

    item: int | str | None = None
    user: int | str | None = None
    title: str | None = None
    similarity: float
    std: float


class Neighbours(BaseModel):
    """Similar items or users, most similar first."""

    similar: list[Neighbour]


class Contribution(BaseModel):
    """The contribution of one rating to a score."""

    item: int | str
    title: str | None = None
    rating: float
    part: float


class Reason(BaseModel):
    """A score as base + sum of all parts + rest; only the ten greatest parts are listed."""

    item: int | str
    title: str | None = None
    score: float
    base: float
    parts: list[Contribution]
    rest: float


class Explained(BaseModel):
    """An explanation for each item."""

    explanations: list[Reason]


class ItemList(BaseModel):
    """Search results, those with the most ratings first."""

    items: list[CatalogueItem]


class CatalogueItem(BaseModel):
    """An item by id and title, and its number of ratings."""

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
    loaded: str = Field(description="When it was loaded, UTC.")
    name: str
    columns: list[str] = Field(description="What is known about items: for where, boost and quota.")


class Health(BaseModel):
    """Status of the service, the model in use, and the number of model changes since the start."""

    status: Literal["ok"]
    model: ModelInfo
    swaps: int
    refused: str | None = Field(description="Why the current file could not be loaded, if so.")


class Ready(BaseModel):
    """Whether requests can be answered soon, and if not, why."""

    ready: bool
    reason: str | None


class ErrorBody(BaseModel):
    """Errors: a sentence for each field, or for the whole request."""

    errors: dict[str, str]
