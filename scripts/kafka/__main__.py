"""The commands behind `./run kafka`: start, stop, jars."""

from __future__ import annotations

import argparse
import sys
import time

from scripts.kafka.artifacts import CACHE, Unavailable, jars
from scripts.kafka.broker import Broker


def main() -> int:
    """Do what the command line asks; 1 where something is not to be had, with the reason."""
    parser = argparse.ArgumentParser(prog="./run kafka", description=__doc__)
    parser.add_argument("command", choices=("start", "stop", "jars"))
    parser.add_argument("--port", type=int, default=9092, help="the broker's port; the one above it is its controller's")
    asked = parser.parse_args()
    broker = Broker(CACHE / f"broker-on-{asked.port}", asked.port)
    try:
        if asked.command == "start":
            began = time.monotonic()
            broker.start()
            print(f"Kafka answers on {broker.servers} (after {time.monotonic() - began:.1f} s, process {broker.pid})")
        elif asked.command == "stop":
            print(f"stopped the broker on {broker.servers}" if broker.stop() else f"no broker was running on {broker.servers}")
        else:  # as a job's [spark] table takes them
            print(f'"spark.jars" = "{",".join(sorted(map(str, jars("connector").glob("*.jar"))))}"')
    except Unavailable as problem:
        print(f"kafka: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
