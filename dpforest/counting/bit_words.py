"""What the kernels need and Numba lacks: a few operations, each a handful of LLVM instructions.

LLVM knows how to do them on every processor; with AVX-512 they are ``vpopcntq`` (8 words at a time), ``vpcmpub``
(64 codes to one word) and masked adds.  Callers keep the indices within bounds: nothing is checked here.
"""

from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

operation: Any = intrinsic  # Numba, not the type checker, knows the types inside compiled code

_LANES = 64  # as many bytes as a vector register has, and as many words as eight of them have
_BYTE, _INT, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def has_vector_popcount() -> bool:
    """Whether Numba writes code for a processor that counts the ones of eight words in one instruction."""
    *_, features = cpu_target.target_context.codegen().magic_tuple()
    return "+avx512vpopcntdq" in features.split(",")


#: Whether to count ones by that instruction, else by carry-save counters (:func:`count_both`).
VECTOR_POPCOUNT = has_vector_popcount()
_DIGITS = 4  # of a carry-save counter, which takes 16 registers at a time
TURN = 1 if VECTOR_POPCOUNT else 4 << _DIGITS  # words that are counted at a time


def _splat(builder, scalar, lanes=_LANES):
    vector = ir.VectorType(scalar.type, lanes)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_INT, 0))
    zeros = ir.Constant(ir.VectorType(_INT, lanes), [0] * lanes)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def _vector(builder, pointer, element):
    return builder.bitcast(pointer, ir.VectorType(element, _LANES).as_pointer())


@operation
def pointer(typing_context, array):
    """Address of an array's first element; ``pointer(a)[i]`` is element i of the flattened array.

    Numba counts the references to every array that it hands from function to function, with atomic additions that
    in a hot loop take longer than the counting.  A pointer has no count: the array must outlive it, so kernels
    allocate nothing.
    """

    def build(context, builder, signature, arguments):
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), build


@operation
def moved(typing_context, base, steps):
    """Pointer to the element ``steps`` further on."""

    def build(context, builder, signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return base(base, types.intp), build


@operation
def popcount(typing_context, word):
    """Number of ones in a 64-bit word."""

    def build(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


@operation
def pack_interval(typing_context, codes, low, span):
    """Word whose bit i, i < 64, says that ``codes[i]`` is one of the ``span + 1`` codes from ``low`` on, cyclically."""

    def build(context, builder, signature, arguments):
        block = builder.load(_vector(builder, arguments[0], _BYTE), align=1)
        from_low = builder.sub(block, _splat(builder, arguments[1]))  # wraps around, as the interval does
        return builder.bitcast(builder.icmp_unsigned("<=", from_low, _splat(builder, arguments[2])), _WORD)

    return types.uint64(codes, types.uint8, types.uint8), build


@operation
def pack_octet(typing_context, row, labels, n, member):
    """Write eight words to ``row``: bit i < n of word b is bit b of ``member[labels[i]]``.  The other bits are zero."""

    def build(context, builder, signature, arguments):
        row, labels, n, member = arguments
        vector = ir.VectorType(_BYTE, _LANES)
        found = cgutils.alloca_once_value(builder, ir.Constant(vector, None))
        builder.store(ir.Constant(vector, None), found)
        bytes_found = builder.bitcast(found, _BYTE.as_pointer())
        with cgutils.for_range_slice(builder, n.type(0), n, n.type(1)) as (i, _):
            label = builder.zext(builder.load(builder.gep(labels, [i])), _WORD)
            builder.store(builder.load(builder.gep(member, [label])), builder.gep(bytes_found, [i]))
        whole = builder.load(found)
        for bit in range(8):
            one = builder.and_(whole, ir.Constant(vector, [1 << bit] * _LANES))
            word = builder.bitcast(builder.icmp_unsigned("!=", one, ir.Constant(vector, None)), _WORD)
            builder.store(word, builder.gep(row, [_INT(bit)]))
        return context.get_dummy_value()

    return types.void(row, labels, types.intp, member), build


def _add_up(builder, words, reads, vector):
    """Number of ones of ``read(i)``, i < words, in each lane, for each of the ``reads``."""
    kind = ir.FunctionType(vector, [vector])
    popcounts = cgutils.get_or_insert_function(builder.module, kind, f"llvm.ctpop.v{vector.count}i64")
    totals = [cgutils.alloca_once(builder, vector) for _ in reads]
    for total in totals:
        builder.store(ir.Constant(vector, None), total)

    def add(total, ones, weight=1):
        more = builder.mul(builder.call(popcounts, [ones]), ir.Constant(vector, [weight] * vector.count))
        builder.store(builder.add(builder.load(total), more), total)

    if VECTOR_POPCOUNT:
        with cgutils.for_range_slice(builder, words.type(0), words, words.type(1)) as (i, _):
            for total, read in zip(totals, reads, strict=True):
                add(total, read(i))
        return [builder.load(total) for total in totals]
    turn = words.type(1 << _DIGITS)
    for total, read in zip(totals, reads, strict=True):
        digits = [cgutils.alloca_once(builder, vector) for _ in range(_DIGITS)]
        for digit in digits:
            builder.store(ir.Constant(vector, None), digit)
        with cgutils.for_range_slice(builder, words.type(0), words, turn) as (i, _):
            add(total, _carry(builder, read, i, digits), 1 << _DIGITS)
        for level, digit in enumerate(digits):
            add(total, builder.load(digit), 1 << level)
    return [builder.load(total) for total in totals]


def _carry(builder, read, first, digits):
    """Add ``2 ** len(digits)`` words to the bitwise counter of these binary digits, lowest first; what is carried."""
    if not digits:
        return read(first)
    *low, top = digits
    half = first.type(1 << len(low))
    b, c = _carry(builder, read, first, low), _carry(builder, read, builder.add(first, half), low)
    a = builder.load(top)
    differ = builder.xor(a, b)
    builder.store(builder.xor(differ, c), top)
    return builder.or_(builder.and_(a, b), builder.and_(differ, c))


@operation
def count_both(typing_context, a, b, words):
    """Number of ones of ``a[i] & b[i]``, i < words, a multiple of TURN, by Harley and Seal's carry-save counter.

    Without an instruction for eight popcounts, a popcount is some nine instructions.  A full adder of bitmaps is five
    and makes two words of three: of 16 words, one is left that counts sixteenfold, and has its ones counted.
    """

    def build(context, builder, signature, arguments):
        a, b, words = arguments
        vector = ir.VectorType(_WORD, 4)

        def read(i):
            at = builder.mul(i, i.type(4))
            places = (builder.bitcast(builder.gep(row, [at]), vector.as_pointer()) for row in (a, b))
            return builder.and_(*(builder.load(place, align=8) for place in places))

        (lanes,) = _add_up(builder, builder.udiv(words, words.type(4)), [read], vector)
        total = builder.extract_element(lanes, ir.Constant(_INT, 0))
        for lane in range(1, 4):
            total = builder.add(total, builder.extract_element(lanes, ir.Constant(_INT, lane)))
        return total

    return types.int64(a, b, types.intp), build


def _octets(n_masks: int):
    """The operation that counts eight planes by ``n_masks`` bitmaps at once."""

    def add(typing_context, planes, masks, stride, words, to, step):
        """Add to ``to[step * k + b]`` the ones of plane b in mask k, which begins at ``masks + stride * k``.

        A word of each plane lies next to the same word of the others, and a word of the mask goes to all eight lanes.
        So no sum over lanes is left to be taken at the end.
        """

        def build(context, builder, signature, arguments):
            planes, masks, stride, words, to, step = arguments
            vector = ir.VectorType(_WORD, 8)

            def read(i, k):
                place = builder.gep(planes, [builder.mul(i, i.type(8))])
                eight = builder.load(builder.bitcast(place, vector.as_pointer()), align=8)
                mask = builder.load(builder.gep(masks, [builder.add(i, builder.mul(stride, stride.type(k)))]))
                return builder.and_(eight, _splat(builder, mask, 8))

            reads = [partial(read, k=k) for k in range(n_masks)]
            for k, ones in enumerate(_add_up(builder, words, reads, vector)):
                place = builder.gep(to, [builder.mul(step, step.type(k))])
                place = builder.bitcast(place, vector.as_pointer())
                builder.store(builder.add(builder.load(place, align=8), ones), place, align=8)
            return context.get_dummy_value()

        return types.void(planes, masks, types.intp, types.intp, to, types.intp), build

    return operation(add)


add_octet, add_octet_4 = _octets(1), _octets(4)


@operation
def or_rows(typing_context, row, bits, stride, parts, begin, end, flip):
    """Write to ``row`` the OR of 64 words at ``bits + stride * parts[i]`` over begin <= i < end, with ``flip`` XORed.

    The words stay in registers while the parts are read.
    """

    def build(context, builder, signature, arguments):
        row, bits, stride, parts, begin, end, flip = arguments
        vector = ir.VectorType(_WORD, _LANES)
        total = cgutils.alloca_once_value(builder, ir.Constant(vector, None))
        with cgutils.for_range_slice(builder, begin, end, context.get_constant(types.intp, 1)) as (i, _):
            part = builder.sext(builder.load(builder.gep(parts, [i])), _WORD)
            place = builder.bitcast(builder.gep(bits, [builder.mul(part, stride)]), vector.as_pointer())
            builder.store(builder.or_(builder.load(total), builder.load(place, align=8)), total)
        flipped = builder.xor(builder.load(total), _splat(builder, flip))
        builder.store(flipped, builder.bitcast(row, vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(row, bits, types.intp, parts, types.intp, types.intp, types.uint64), build


@operation
def add_where(typing_context, numbers, word, amount):
    """Add ``amount`` to ``numbers[i]`` (int32) for each one bit i of ``word``."""

    def build(context, builder, signature, arguments):
        place = _vector(builder, arguments[0], _INT)
        chosen = builder.bitcast(arguments[1], ir.VectorType(ir.IntType(1), _LANES))
        zeros = ir.Constant(ir.VectorType(_INT, _LANES), None)
        more = builder.select(chosen, _splat(builder, arguments[2]), zeros)
        builder.store(builder.add(builder.load(place, align=4), more), place, align=4)
        return context.get_dummy_value()

    return types.void(numbers, types.uint64, types.int32), build
