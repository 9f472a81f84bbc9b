"""SIMD operations on vectors of eight numbers, as LLVM instructions.

The compiler cannot prove that the arrays of a loop do not overlap, so it does not vectorise short
loops. These functions load, combine and store eight numbers explicitly. Their sums are not
reassociated. Positions are indices into the flat data of an array, of type uintp.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.extending import models, register_model

intrinsic: Any = extending.intrinsic
EIGHT = 8
WORD = ir.IntType(32)


class Vector8(types.Type):
    """The Numba type of eight numbers of one type."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Vector8({dtype})")


@register_model(Vector8)
class Vector8Model(models.PrimitiveModel):
    """The LLVM representation: a vector register."""

    def __init__(self, manager: Any, kind: Any) -> None:
        number = manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.VectorType(number, EIGHT))


def _address(target: Any, builder: Any, array: Any, value: Any, at: Any) -> Any:
    """Return a pointer to eight numbers of an array."""
    data = target.make_array(array)(target, builder, value).data
    kind = target.get_value_type(Vector8(array.dtype)).as_pointer()
    return builder.bitcast(builder.gep(data, [at]), kind)


def _shuffle(builder: Any, left: Any, right: Any, places: list[int]) -> Any:
    """Select eight of the sixteen numbers of two vectors."""
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(WORD, EIGHT), places))


@intrinsic
def load8(context: Any, array: Any, at: Any) -> Any:
    """Load eight numbers from an array."""

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        where = _address(target, builder, array, *values)
        return builder.load(where, align=array.dtype.bitwidth // 8)

    return Vector8(array.dtype)(array, types.uintp), build


@intrinsic
def store8(context: Any, array: Any, at: Any, numbers: Any) -> Any:
    """Store eight numbers in an array."""

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        where = _address(target, builder, array, *values[:2])
        builder.store(values[2], where, align=array.dtype.bitwidth // 8)
        return target.get_dummy_value()

    return types.void(array, types.uintp, Vector8(array.dtype)), build


@intrinsic
def broadcast8(context: Any, number: Any) -> Any:
    """Return a vector of eight copies of a number."""

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        nothing = ir.Constant(target.get_value_type(signature.return_type), ir.Undefined)
        one = builder.insert_element(nothing, values[0], WORD(0))
        return _shuffle(builder, one, nothing, [0] * EIGHT)

    return Vector8(number)(number), build


@intrinsic
def mul8(context: Any, a: Any, b: Any) -> Any:
    """Return a b, elementwise."""

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.fmul(*values)

    return a(a, b), build


@intrinsic
def fma8(context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a b + c, elementwise, as a fused multiply-add where the processor has one."""

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        product = builder.fmul(*values[:2], flags=("contract",))
        return builder.fadd(product, values[2], flags=("contract",))

    return a(a, b, c), build


@intrinsic
def convert8(context: Any, numbers: Any, like: Any) -> Any:
    """Return eight numbers in the precision of an array."""
    kind = Vector8(like.dtype)

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        found, wanted = values[0], target.get_value_type(kind)
        if numbers.dtype.bitwidth < like.dtype.bitwidth:
            return builder.fpext(found, wanted)
        return builder.fptrunc(found, wanted) if numbers.dtype != like.dtype else found

    return kind(numbers, like), build


@intrinsic
def sums8(context: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    """Return the sums of the eight numbers of each of eight vectors."""

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = list(values)
        for half in (1, 2, 4):  # each step adds halves of two vectors to one
            even = [i + EIGHT - half if i & half else i for i in range(EIGHT)]
            odd = [i + EIGHT if i & half else i + half for i in range(EIGHT)]
            found = [
                builder.fadd(_shuffle(builder, x, y, even), _shuffle(builder, x, y, odd))
                for x, y in zip(found[::2], found[1::2], strict=True)
            ]
        return found[0]

    return a(a, b, c, d, e, f, g, h), build


@intrinsic
def sum8(context: Any, numbers: Any) -> Any:
    """Return the sum of the eight numbers of a vector."""

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        (found,) = values
        for half in (4, 2, 1):
            other = [i ^ half for i in range(EIGHT)]
            found = builder.fadd(found, _shuffle(builder, found, found, other))
        return builder.extract_element(found, WORD(0))

    return numbers.dtype(numbers), build


@intrinsic
def accumulate8(context: Any, array: Any, at: Any, numbers: Any) -> Any:
    """Add eight numbers, of either precision, to an array of doubles."""

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        where, found = _address(target, builder, array, *values[:2]), values[2]
        if numbers.dtype != array.dtype:
            found = builder.fpext(found, where.type.pointee)
        sums = builder.fadd(builder.load(where, align=8), found)
        builder.store(sums, where, align=8)
        return target.get_dummy_value()

    return types.void(array, types.uintp, numbers), build


@intrinsic
def mean_and_variance8(context: Any, pairs: Any, at: Any, count: Any, out: Any) -> Any:
    """Load eight pairs of doubles, E[x] and E[x^2]; return E[x] and Var[x].

    The results have the type of `out`, and are 0 for all pairs but the first `count`.
    """
    kind = Vector8(out.dtype)

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        source, at, count, _ = values
        first = builder.shl(at, at.type(1))
        low, high = (
            builder.load(_address(target, builder, pairs, source, start), align=8)
            for start in (first, builder.add(first, at.type(EIGHT)))
        )
        places = ir.Constant(ir.VectorType(count.type, EIGHT), list(range(EIGHT)))
        limit = builder.insert_element(ir.Constant(places.type, ir.Undefined), count, WORD(0))
        inside = builder.icmp_unsigned("<", places, _shuffle(builder, limit, limit, [0] * EIGHT))
        zeros = ir.Constant(target.get_value_type(kind), [0.0] * EIGHT)
        means, squares = (
            _shuffle(builder, low, high, list(range(place, 2 * EIGHT, 2))) for place in (0, 1)
        )
        found = []
        for every in (means, builder.fsub(squares, builder.fmul(means, means))):
            if pairs.dtype != out.dtype:
                every = builder.fptrunc(every, zeros.type)
            found.append(builder.select(inside, every, zeros))
        return target.make_tuple(builder, signature.return_type, found)

    both = types.UniTuple(kind, 2)
    return both(pairs, types.uintp, types.uintp, out), build


@intrinsic
def transpose8(
    context: Any, lines: Any, at: Any, stride: Any, out: Any, to: Any, apart: Any
) -> Any:
    """Transpose an 8 x 8 block from one array into another.

    Its lines are `stride` apart in `lines`, its columns `apart` in `out`.
    """

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        source, at, stride, sink, to, apart = values
        numbers = []
        for _ in range(EIGHT):
            where = _address(target, builder, lines, source, at)
            numbers.append(builder.load(where, align=lines.dtype.bitwidth // 8))
            at = builder.add(at, stride)
        for half in (4, 2, 1):
            low = [i + EIGHT - half if i & half else i for i in range(EIGHT)]
            high = [i + EIGHT if i & half else i + half for i in range(EIGHT)]
            for i in (i for i in range(EIGHT) if not i & half):
                pair = numbers[i], numbers[i + half]
                numbers[i] = _shuffle(builder, *pair, low)
                numbers[i + half] = _shuffle(builder, *pair, high)
        for column in numbers:
            where = _address(target, builder, out, sink, to)
            builder.store(column, where, align=out.dtype.bitwidth // 8)
            to = builder.add(to, apart)
        return target.get_dummy_value()

    place = types.uintp
    return types.void(lines, place, place, out, place, place), build


@intrinsic
def prefetch(context: Any, array: Any, at: Any) -> Any:
    """Ask for a cache line that is read soon, so that several loads overlap."""

    def build(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        where = builder.bitcast(
            _address(target, builder, array, *values), ir.IntType(8).as_pointer()
        )
        kind = ir.FunctionType(ir.VoidType(), [where.type, WORD, WORD, WORD])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(call, [where, WORD(0), WORD(3), WORD(1)])  # to read, often, data
        return target.get_dummy_value()

    return types.void(array, types.uintp), build
