"""Tables on their way through Spark, as bytes in rows: in packets of a size that any number of them may have.

Spark hands rows to Python in Arrow batches of at most 10,000 rows, and unless it is told not to, asks after every row how many
bytes the batch has: a third of what handing rows over costs. It need not ask (`sessions`) as long as ten thousand packets are
about as much as the batch that it would make by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from skyband.state import table_to_bytes

MOST_BYTES = 1 << 15  # of a packet; one row may have more


def packets(table: pa.Table) -> Iterator[bytes]:
    """The rows in packets, in their order; at least one, perhaps empty."""
    step = max(1, MOST_BYTES * max(len(table), 1) // max(table.nbytes, 1))
    for at in range(0, max(len(table), 1), step):
        yield table_to_bytes(table.slice(at, step))
