"""skyband on Spark beside what one would write without it, on the same files in one run: `./run bench spark`.

settings.py  what is asked: window, slide and k; how large files and micro-batches are
events.py    the events: parquet files for everybody, and the answer by sorting
panes.py     the hand-written rival's arithmetic: best k of each pane, panes merged into windows
rivals.py    Spark's own ways, the hand-written one, and the floors nobody gets below
systems.py   THE TABLE: every system, one row each, skyband among them
child.py     one system over the files, in a process of its own
measure.py   starting that process, watching its memory, reading its figures
runner.py    all systems over all settings and scores
check.py     every system's windows, row for row, against sorting
report.py    the promises, the tables and the picture
command.py   what a person sees

Figures of other things, `./run bench spark queries|cores|skew|latency|flink`, each with `--quick`:

rows.py                        rows with four attributes, and linear questions over them
case.py, case_child.py         one system over those files, in a process of its own
queries.py                     many queries on one stream: embedded, on Spark, as many streams of Spark's own
spread.py                      one core and two; one hot group
latency.py, latency_child.py   from a row's arrival to its change row; feeder.py sends the rows at a pace
flink.py, flink_child.py       Flink SQL's Window Top-N on the same files
"""
