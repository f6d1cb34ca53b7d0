"""The papers' experiments, run again: `./run repro` lists what they claim, `./run repro run` checks it.

claims.py      THE TABLE: what each paper says must hold, where, and with which bound
claim.py       what a claim is
relations.py   the relations claims are made of, each a number that must not exceed the bound
tkde17.py      the experiments of SAP (Zhu et al., TKDE 2017) and the figures printed there
tods15.py      the experiments of candidate pruning (Pripužić et al., TODS 2015): many queries over one stream of points
tods15_claims.py  what it says of them
sigmod06.py    the experiments of TSL, TMA and SMA (Mouratidis et al., SIGMOD 2006): many preferences over a window of points
experiment.py  what an experiment is: series, columns, data sets, the paper's figures
streams.py     the papers' data sets: generated, or what stands for them in the folder SKYBAND_DATA names
points.py      the same where rows are points: uniform, clustered, of real sensors
runner.py      drives algorithms over streams; measures time, candidates and bytes
many.py        drives many queries over points; measures time, what is held, and the errors of an approximate answer
preferences.py drives preference queries over points, cycle by cycle; measures time, space and what is held
report.py      tables for people, JSON for the record
plot.py        pictures of the results
results/       what the last whole run found

To add an experiment: describe it beside its paper's others, add its claims to the table.
"""
