"""skyband keeps standing top-k questions true over moving windows of a stream.

>>> import skyband as sb
>>> hot = sb.TopK(name="hot", k=1, score="price * volume", window=sb.CountWindow(1000))
>>> monitor = sb.Monitor([hot])
>>> monitor.push({"price": [3.0, 2.0], "volume": [1, 4]}).column("event").to_pylist()
['enter', 'leave', 'enter']
"""

from skyband.across_query import TopKAcross
from skyband.algorithms import algorithms
from skyband.changes import fold
from skyband.errors import QueryError, SchemaError, SkybandError, StateError
from skyband.monitor import Monitor
from skyband.query import Threshold, TopK, TopKPairs
from skyband.scores.pair_score import pair_distance
from skyband.scores.score import distance, linear, product
from skyband.window import CountWindow, TimeWindow

__version__ = "0.1.0"

__all__ = [
    "CountWindow",
    "Monitor",
    "QueryError",
    "SchemaError",
    "SkybandError",
    "StateError",
    "Threshold",
    "TimeWindow",
    "TopK",
    "TopKAcross",
    "TopKPairs",
    "algorithms",
    "distance",
    "fold",
    "linear",
    "pair_distance",
    "product",
]
