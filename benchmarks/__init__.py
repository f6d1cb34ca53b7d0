"""skyband against its peers and its limits: `./run bench`.

streams.py   the scores that are measured: uniform, sinusoidal, falling, real
measure.py   rows per second of a query over a stream, beside `numpy.max` over the same array
numbers.py   the figures skyband promises, each with its yardstick
grid.py      every algorithm over sizes, slides, k and data; what `auto` chose against the best
plot.py      pictures of the results
"""
