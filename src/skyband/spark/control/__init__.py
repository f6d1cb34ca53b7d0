"""Live control: queries come and go while the stream runs, by commands that come as a stream of their own.

    commands ─► read, addressed ─┐
                                 ├─► by shard: commands in order, windows ─► result rows and acknowledgements
    rows ───► tie, bucket ───────┘

    command.py   one command: its text, its place in the order of commands      terms.py   what workers are told
    live.py      the windows of one group while queries come and go             shard.py   commands and groups of one state
    travel.py    what is sent to the shards                                     pace.py    queries that close windows together
    answer.py    result rows and acknowledgements as one table                  steps.py   the steps as Spark runs them
    table.py     queries out of a table

Which rows a later query will rank is unknown, so every row travels whole: the reduction next to the data is for streams
whose queries are known when they start.
"""
