"""Asking for memory before it is read.

Where the next places to be touched are known, and lie far apart, the processor can bring them while it works on others.
"""

from __future__ import annotations

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

_KEEP = 3  # as near as possible
_DATA = 1  # not instructions


@intrinsic
def _fetch(typingctx, array, place):
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        int32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, int32, int32, int32])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], kind)
        builder.call(prefetch, [address, int32(0), int32(_KEEP), int32(_DATA)])
        return context.get_dummy_value()

    return types.none(array, types.int64), generate


def fetch(array, place):
    """Ask for the line of memory that entry `place` of the array lies in, counted through all its dimensions. Changes nothing;
    a place outside the array is allowed."""


@overload(fetch)
def _compiled_fetch(array, place):
    return lambda array, place: _fetch(array, place)
