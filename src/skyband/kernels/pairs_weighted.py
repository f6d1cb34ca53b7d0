"""Distances that others are told from: weighted sums of differences or of their squares, and the largest weighted difference.

They say which stretches of older rows can hold a score that matters; the score itself is then computed as it is written. Terms
come from the left, all but the last two into a buffer, no more than a block then; the last two are compared unwritten.
"""

from __future__ import annotations

from skyband.kernels.jit import lean


@lean
def any_weighted_l1(columns, begin, count, newer, weights, out, sign, level):
    """Does Σ wⱼ |xⱼ - vⱼ| of any of these rows, turned by `sign`, reach `level`?"""
    d, end, hit = len(weights), begin + count, False
    x, v, p = columns[d - 1, begin:end], newer[d - 1], weights[d - 1]
    if d == 1:
        for i in range(count):
            hit |= sign * (p * abs(x[i] - v)) >= level
        return hit
    y, w, q = columns[d - 2, begin:end], newer[d - 2], weights[d - 2]
    if d == 2:
        for i in range(count):
            hit |= sign * (q * abs(y[i] - w) + p * abs(x[i] - v)) >= level
        return hit
    o = out[:count]
    for j in range(d - 2):
        z, u, r = columns[j, begin:end], newer[j], weights[j]
        if j == 0:
            for i in range(count):
                o[i] = r * abs(z[i] - u)
        else:
            for i in range(count):
                o[i] += r * abs(z[i] - u)
    for i in range(count):
        hit |= sign * (o[i] + q * abs(y[i] - w) + p * abs(x[i] - v)) >= level
    return hit


@lean
def any_weighted_l2(columns, begin, count, newer, weights, out, sign, level):
    """The same of Σ wⱼ (xⱼ - vⱼ)²."""
    d, end, hit = len(weights), begin + count, False
    x, v, p = columns[d - 1, begin:end], newer[d - 1], weights[d - 1]
    if d == 1:
        for i in range(count):
            hit |= sign * (p * ((x[i] - v) * (x[i] - v))) >= level
        return hit
    y, w, q = columns[d - 2, begin:end], newer[d - 2], weights[d - 2]
    if d == 2:
        for i in range(count):
            hit |= sign * (q * ((y[i] - w) * (y[i] - w)) + p * ((x[i] - v) * (x[i] - v))) >= level
        return hit
    o = out[:count]
    for j in range(d - 2):
        z, u, r = columns[j, begin:end], newer[j], weights[j]
        if j == 0:
            for i in range(count):
                o[i] = r * ((z[i] - u) * (z[i] - u))
        else:
            for i in range(count):
                o[i] += r * ((z[i] - u) * (z[i] - u))
    for i in range(count):
        hit |= sign * (o[i] + q * ((y[i] - w) * (y[i] - w)) + p * ((x[i] - v) * (x[i] - v))) >= level
    return hit


@lean
def any_largest(columns, begin, count, newer, weights, out, sign, level):
    """The same of the largest wⱼ |xⱼ - vⱼ|."""
    d, end, hit = len(weights), begin + count, False
    x, v, p = columns[d - 1, begin:end], newer[d - 1], weights[d - 1]
    if d == 1:
        for i in range(count):
            hit |= sign * (p * abs(x[i] - v)) >= level
        return hit
    y, w, q = columns[d - 2, begin:end], newer[d - 2], weights[d - 2]
    if d == 2:
        for i in range(count):
            one, other = q * abs(y[i] - w), p * abs(x[i] - v)
            hit |= sign * (one if one > other else other) >= level
        return hit
    o = out[:count]
    for j in range(d - 2):
        z, u, r = columns[j, begin:end], newer[j], weights[j]
        if j == 0:
            for i in range(count):
                o[i] = r * abs(z[i] - u)
        else:
            for i in range(count):
                term = r * abs(z[i] - u)
                o[i] = term if term > o[i] else o[i]
    for i in range(count):
        one, other = q * abs(y[i] - w), p * abs(x[i] - v)
        largest = one if one > other else other
        hit |= sign * (largest if largest > o[i] else o[i]) >= level
    return hit
