"""The scores that are measured. Real ones come from the folder SKYBAND_DATA names, if it is set."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np


def uniform(rows: int) -> np.ndarray:
    """No relation between score and time (the papers' TIMEᵘ)."""
    return np.random.default_rng(7).random(rows)


def sine(rows: int) -> np.ndarray:
    """Scores that follow the time, rising and falling for a million rows each (TIMEʳ)."""
    return np.sin(np.pi * np.arange(1, rows + 1) / 10**6)


def falling(rows: int) -> np.ndarray:
    """Every row is worse than all before it: everything can still win."""
    return -np.arange(rows, dtype=float)


SYNTHETIC: dict[str, Callable[[int], np.ndarray]] = {"uniform": uniform, "sine": sine, "falling": falling}


def taxi(folder: Path) -> np.ndarray:
    """Speed of New York taxi trips, in the order they ended (the papers' TRIP)."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    begin, end, miles = "lpep_pickup_datetime", "lpep_dropoff_datetime", "trip_distance"
    table = pq.read_table(folder / "nyc_green_taxi_2020.parquet", columns=[begin, end, miles])
    seconds = pc.subtract(table[end].cast("int64"), table[begin].cast("int64")).to_numpy() / 1000
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = table[miles].to_numpy() / seconds
    return speed[(seconds > 0) & (speed > 0)]


def connections(folder: Path) -> np.ndarray:
    """Bytes of network connections: long runs of one kind, many ties."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "kddcup99_10pct_connections.parquet", columns=["src_bytes", "dst_bytes"])
    return table["src_bytes"].to_numpy().astype(float) + table["dst_bytes"].to_numpy()


def trades(folder: Path) -> np.ndarray:
    """Price times quantity of trades in two coins against the dollar, in the order they were received (for the papers' STOCK).

    Coin-margined trades are left out: their quantity counts contracts.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "binance_trades_20240808.parquet", columns=["market", "p", "q"])
    table = table.filter(pc.not_equal(table["market"].cast("string"), "cm"))
    price, quantity = (np.asarray(table[name].to_numpy(), float) for name in ("p", "q"))
    worth: np.ndarray = price * quantity
    return worth


def observations(folder: Path) -> np.ndarray:
    """Angle in degrees between observed minor planets and the vernal point (right ascension 0, declination 0; for the
    papers' PLANET)."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "mpc_observations_neo.parquet", columns=["ra_deg", "dec_deg"])
    ascension, declination = (np.radians(np.asarray(table[name].to_numpy(), float)) for name in ("ra_deg", "dec_deg"))
    angle: np.ndarray = np.degrees(np.arccos(np.clip(np.cos(declination) * np.cos(ascension), -1.0, 1.0)))
    return angle


REAL: dict[str, Callable[[Path], np.ndarray]] = {"taxi": taxi, "connections": connections}
SHORT: dict[str, Callable[[Path], np.ndarray]] = {"trades": trades, "observations": observations}
"""Real streams too short for windows of 10⁵ rows."""


def real_folder() -> Path | None:
    """The folder of real streams, if SKYBAND_DATA names one."""
    folder = os.environ.get("SKYBAND_DATA")
    return Path(folder) if folder else None


def stream(name: str, rows: int) -> np.ndarray:
    """`rows` scores of the stream `name`; a real one that is shorter is repeated."""
    if name in SYNTHETIC:
        return SYNTHETIC[name](rows)
    folder = real_folder()
    if folder is None:
        raise SystemExit(f"the stream {name!r} is real data: set SKYBAND_DATA to the folder that holds it")
    return np.resize((REAL | SHORT)[name](folder), rows)


def names() -> list[str]:
    """The streams that can be measured here."""
    return [*SYNTHETIC, *(REAL if real_folder() is not None else ())]
