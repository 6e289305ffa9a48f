"""What the kernels need and Numba lacks: a few operations, each a handful of LLVM instructions.

LLVM knows how to do them on every processor; with AVX-512 they are ``vpopcntq`` (8 words at a time), ``vpcmpub``
(64 codes to one word) and masked adds.  Callers keep the indices within bounds: nothing is checked here.
"""

from typing import Any

from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# Numba keeps compiled kernels until their own file changes.  After a change to what is defined here, or to a constant
# that kernels of another file use, delete the *.nbi and *.nbc files in __pycache__.
#
# Any: Numba, not the type checker, knows the types inside compiled code.
operation: Any = intrinsic
jit: Any = njit
# Wrappers that nobody calls take as long to compile as a short function.
helper = jit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # called by kernels alone
kernel = jit(nogil=True, no_cfunc_wrapper=True, cache=True)  # compiled on its first call, then kept on disk

_LANES = 64  # as many bytes as a vector register has, and as many words as eight of them have
_BYTE, _INT, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def has_vector_popcount() -> bool:
    """Whether this processor counts the ones of eight words in one instruction."""
    try:
        return bool(binding.get_host_cpu_features().get("avx512vpopcntdq", False))
    except RuntimeError:  # LLVM does not know this processor
        return False


def _splat(builder, scalar):
    vector = ir.VectorType(scalar.type, _LANES)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_INT, 0))
    zeros = ir.Constant(ir.VectorType(_INT, _LANES), [0] * _LANES)
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
