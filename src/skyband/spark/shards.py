"""Which shard answers what: queries over the columns themselves, spread over several states of a group.

    many scores     by query: each shard is sent the rows that some query of it can rank, and is a Monitor
    pairs           by blocks of the pair space: a row's block comes from its tie; shard (i, j) ranks the pairs with one row
                    of block i and one of block j, and the shards' answers are merged
    across streams  by object: a shard has the objects whose keys fall to it, and the shards' answers are merged

Shard 0 is another: it answers the queries over score columns (see `plan`), and counts rows. Queries that report arrivals need
to know who ranked before, whichever shard it was of; they, and approximate ones, have one shard that is sent all they need.
So do all queries of a stream with deletions: whether a key is live depends on every query's window. They are one pace, whatever
their slides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from skyband.algorithms import choose, settled
from skyband.lanes import attributes_of, auto_key
from skyband.query import Query, RankedQuery, TopKAcross, TopKPairs
from skyband.scores.score import score_key, where_key
from skyband.spark.contest import contends
from skyband.spark.needs import Blocks, Contenders, Everything, Keys, Need, Within
from skyband.spark.paces import Pace, by_slide, exact, smallest_state
from skyband.window import CountWindow

BLOCK = "#block"  # the column that holds a row's part
SHARD = "shard"  # what rows are brought together by, besides their group
MANY = 64  # distinct scores up to which each is computed beside the data, as a column; more are spread by query
CROWD = 4000
"""Scores of one crowd that are worth a shard of their own. Each shard is sent, and keeps, all rows: 1000 such queries take 1.3
times the time of 500."""
_PART = "\n"  # ends the name of a query whose answers are parts of an answer


@dataclass(frozen=True)
class Shard:
    """Queries over the input's own columns that one state of a group answers."""

    address: int  # the value of the column `shard`
    identity: str  # what its results are about: "row", "pair" or "object"
    paces: tuple[Pace, ...]  # as many as the plan has, with the queries that are answered here
    columns: tuple[int, ...]  # of the input, that travel
    need: Need
    merges: bool = False  # its answers are parts of answers
    tells: bool = False  # it counts late rows of the pace that counts rows

    @property
    def counts_rows(self) -> bool:
        """Every row must be told of, for each moves the windows."""
        return any(pace.slide is None and pace.queries for pace in self.paces)


def whole_name(name: str) -> str:
    """The name of the query that a part belongs to."""
    return name.rpartition(_PART)[0]


def is_merged(query: Query, spread: int) -> bool:
    """Whether its answer is put together from those of several shards."""
    if spread == 1 or query.emit == "arrivals":
        return False
    return isinstance(query, TopKPairs) or (isinstance(query, TopKAcross) and is_exact(query))


def is_exact(query: Query) -> bool:
    """Whether its answers are: nothing approximate is chosen without being asked for."""
    algorithm = query.settled_algorithm if isinstance(query, TopKAcross) else query.algorithm
    return algorithm == "auto" or settled(algorithm)[0].exact


def make_shards(
    queries: Iterable[Query],
    slides: tuple[int | None, ...],
    columns: int,
    names: tuple[str, ...],
    groups: tuple[int, ...],
    spread: int,
    *,
    keyed: bool,
    scored_counts: bool,
) -> tuple[Shard, ...]:
    """The shards of queries, whose durations are whole numbers. `spread`: over how many states to spread the work of one
    kind; `keyed`: rows may be deleted; `scored_counts`: shard 0 sees every row already, and counts the late ones."""
    queries = tuple(queries)
    heard = [query for query in queries if query.emit != "none"]
    whole = tuple(range(columns))
    made: list[Shard] = []

    def add(identity: str, own: Iterable[Query], carried: tuple[int, ...], need: Need, merges: bool = False) -> None:
        paces = (Pace(slides[0], tuple(own)),) if keyed else by_slide(slides, own)
        made.append(Shard(0, identity, paces, carried, need, merges))

    # a key is live while the longest window holds its row: who may be deleted, or come again, is a matter of all queries
    ranked: list[RankedQuery] = [one for one in (queries if keyed else heard) if not isinstance(one, TopKPairs | TopKAcross)]
    contending: list[RankedQuery] = []
    others: list[RankedQuery] = []
    for one in ranked:
        (contending if not keyed and is_exact(one) and contends(one) else others).append(one)
    for own in _dealt(contending, spread):
        add("row", _timed_smallest(own), whole, Contenders())
    for own in _dealt(others, 1 if keyed else spread):
        wheres = tuple({where_key(query.where): query.where for query in own if query.where is not None}.values())
        narrow = not keyed and all(query.where is not None for query in own) and len(wheres) <= MANY
        add("row", own if keyed else _timed_smallest(own), whole, Within(wheres) if narrow else Everything())
    pairs = [query for query in heard if isinstance(query, TopKPairs)]
    if merged := [query for query in pairs if is_merged(query, spread)]:
        blocks = next(b for b in range(1, spread + 2) if b * (b + 1) // 2 >= spread)
        for i in range(blocks):
            for j in range(i, blocks):
                add("pair", _between(merged, i, j), whole, Blocks(i, j, blocks), merges=True)
    if direct := [query for query in pairs if not is_merged(query, spread)]:
        add("pair", direct, whole, Everything())
    for query in heard:
        if isinstance(query, TopKAcross):
            carried = tuple(dict.fromkeys([*groups, *(names.index(name) for name in (query.key, query.stream, query.value))]))
            parts = spread if is_merged(query, spread) else 1
            local = replace(query, name=f"{query.name}{_PART}", emit="snapshots") if parts > 1 else query
            for part in range(parts):
                add("object", [local], carried, Keys(query, part, parts), merges=parts > 1)
    return tuple(_addressed(made, spread, scored_counts))


def _timed_smallest(queries: list[RankedQuery]) -> list[RankedQuery]:
    """Time windows with the algorithm that remembers least, where too few are alike; crowds gather by themselves."""
    crowds = Counter(map(_crowd_of, queries))
    alone = [query for query in queries if (crowd := _crowd_of(query)) is None or crowds[crowd] < choose.MANY]
    timed = [query for query in alone if not isinstance(query.window, CountWindow)]
    smallest = dict(zip((query.name for query in timed), smallest_state(timed), strict=True))
    return [smallest.get(query.name, exact(query)) for query in queries]


def _dealt(queries: list[RankedQuery], spread: int) -> Iterator[list[RankedQuery]]:
    """Queries in as many lots as are worth it, those that can form a crowd together."""
    scores: dict[Hashable, list[RankedQuery]] = {}
    for query in sorted(queries, key=_likeness):
        scores.setdefault((score_key(query.score), where_key(query.where), query.window), []).append(query)
    keys = [_crowd_of(own[0]) for own in scores.values()]
    crowds = Counter(keys)
    most = [CROWD if key is not None and crowds[key] >= MANY else MANY for key in keys]
    weight = np.array([MANY * CROWD // one for one in most], np.int64)  # a shard is worth MANY * CROWD
    lots = max(1, min(spread, int(weight.sum()) // (MANY * CROWD)))
    lot = (weight.cumsum() - weight) * lots // max(int(weight.sum()), 1)
    for number in range(lots):
        own = [query for at, same in zip(lot, scores.values(), strict=True) if at == number for query in same]
        if own:
            yield own


def _crowd_of(query: RankedQuery) -> Hashable | None:
    """What queries must have in common to be answered by one structure, whatever their scores."""
    window = query.window
    return auto_key(query, (not isinstance(window, CountWindow), cast(int, window.size), cast(int, window.slide)))


def _likeness(query: RankedQuery) -> tuple[Any, ...]:
    attributes = () if callable(query.score) else attributes_of(query)
    return (attributes, repr(query.window), query.emit == "snapshots")


def _between(queries: list[TopKPairs], i: int, j: int) -> list[TopKPairs]:
    """Each query for the pairs with one row of block i and one of block j: conditions on either side alone, so that a
    distance stays one."""
    ways = [(i, j)] if i == j else [(i, j), (j, i)]
    return [
        replace(query, name=f"{query.name}{_PART}{a}", where=_and_blocks(query.where, a, b), emit="snapshots")
        for query in queries
        for a, b in ways
    ]


def _and_blocks(where: Any, a: int, b: int) -> Any:
    if isinstance(where, Mapping):
        return {**where, f"a.{BLOCK}": (float(a), float(a)), f"b.{BLOCK}": (float(b), float(b))}
    blocks = f"`a.{BLOCK}` == {a} and `b.{BLOCK}` == {b}"
    return blocks if where is None else f"({where}) and {blocks}"


def _addressed(shards: list[Shard], spread: int, scored_counts: bool) -> Iterator[Shard]:
    """Shards with addresses that Spark's hash spreads evenly over `spread` partitions: few keys would else meet in one."""
    taken, told = {0}, scored_counts
    for number, shard in enumerate(shards, 1):
        address = next(a for a in range(1 << 20) if a not in taken and spark_hash(a) % spread == number % spread)
        taken.add(address)
        tells = shard.counts_rows and not told
        told |= tells
        yield replace(shard, address=address, tells=tells)


def spark_hash(number: int) -> int:
    """Spark's hash of an int column that follows one constant 0: Murmur3, seed 42."""
    return _murmur(number, _murmur(0, 42))


def _murmur(number: int, seed: int) -> int:
    mask = 0xFFFFFFFF
    k = number * 0xCC9E2D51 & mask
    k = ((k << 15 | k >> 17) & mask) * 0x1B873593 & mask
    h = (seed & mask) ^ k
    h = ((h << 13 | h >> 19) & mask) * 5 + 0xE6546B64 & mask
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
