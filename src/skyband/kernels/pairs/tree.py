"""The priority search tree over the band: a heap by age, a search tree by rank (ICDE12 Algorithms 1 and 2).

Every node's pair has an `a` no older than those below it; pairs in a left subtree rank above those in the right one. The
band is sorted, so that a pair's place is its rank and medians need no search. Building it takes O(pairs log pairs), reading
k pairs whose `a` is recent enough O(log pairs + k).
"""

from __future__ import annotations

from skyband.kernels.jit import lean
from skyband.kernels.pairs.state import BAND, TREE

_NODE, _BEGIN, _END = 0, 1, 2  # of a part still to be built: its parent (+ 1, negative: to the right), its items
_FIELDS = 3


@lean
def build(state):
    """Make the tree of the band as it is."""
    tree, older, count = state.tree, state.band.a, state.marks[BAND]
    items, work, nodes, depth = tree.items, tree.work, 0, 0
    for place in range(count):
        items[place] = place
    if count:
        work[_NODE], work[_BEGIN], work[_END] = 0, 0, count
        depth = 1
    while depth:
        depth -= 1
        at = depth * _FIELDS
        parent, begin, end = work[at + _NODE], work[at + _BEGIN], work[at + _END]
        youngest = begin
        for i in range(begin + 1, end):
            if older[items[i]] > older[items[youngest]]:
                youngest = i
        node, nodes = nodes, nodes + 1
        tree.place[node], tree.left[node], tree.right[node] = items[youngest], -1, -1
        if parent > 0:
            tree.left[parent - 1] = node
        elif parent < 0:
            tree.right[-parent - 1] = node
        for i in range(youngest, end - 1):
            items[i] = items[i + 1]
        end -= 1
        middle = (begin + end + 1) >> 1
        if middle < end:
            work[at + _NODE], work[at + _BEGIN], work[at + _END] = -(node + 1), middle, end
            depth, at = depth + 1, at + _FIELDS
        if begin < middle:
            work[at + _NODE], work[at + _BEGIN], work[at + _END] = node + 1, begin, middle
            depth += 1
    state.marks[TREE] = nodes


@lean
def find(state, k, first):
    """Places in the band of the best k pairs with `a` from `first` on, increasing, into tree.found; returns how many.

    Walks the tree in post-order, entering only nodes in the window, until k are visited: what ranks among the best is
    visited or on the way there.
    """
    tree, older = state.tree, state.band.a
    stack, found = tree.work, tree.found
    count, depth = 0, 0
    if state.marks[TREE] and older[tree.place[0]] >= first:
        stack[0], depth = 0, 1
    while depth and count < k:
        node = stack[depth - 1]
        if node < 0:  # marked: its children are done
            count = _insert(found, count, tree.place[-node - 1])
            depth -= 1
            continue
        left, right = tree.left[node], tree.right[node]
        stack[depth - 1] = -node - 1
        if right >= 0 and older[tree.place[right]] >= first:
            stack[depth], depth = right, depth + 1
        if left >= 0 and older[tree.place[left]] >= first:
            stack[depth], depth = left, depth + 1
    for i in range(depth):
        if stack[i] < 0:
            count = _insert(found, count, tree.place[-stack[i] - 1])
    return min(count, k)


@lean
def _insert(found, count, place):
    """Keep `found` increasing; those visited come nearly so."""
    at = count
    while at > 0 and found[at - 1] > place:
        found[at] = found[at - 1]
        at -= 1
    found[at] = place
    return count + 1
