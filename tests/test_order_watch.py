"""The watch over a stream's order: z-values against plain definitions, how they vary in random order, what they notice."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kurtosis, mannwhitneyu, norm, pearson3, rankdata

from benchmarks.streams import real_folder
from skyband.kernels.ranked.order_watch import FEWEST, LEVEL, SAMPLE, drift_z, looks_ordered, pulled_in, serial_z

NAN, INF = math.nan, math.inf


def scores_of(least: int, most: int) -> st.SearchStrategy[np.ndarray]:
    """Scores with every degree of ties, infinities and gaps."""
    value = st.sampled_from([0.0, -0.0, 1.0, 2.0, -INF, INF, NAN]) | st.floats(-3, 3) | st.integers(-9, 9).map(float)
    return st.lists(value, min_size=least, max_size=most).map(lambda values: np.array(values, np.float64))


def kept(scores: np.ndarray) -> np.ndarray:
    return scores[~np.isnan(scores)]


def bartels(scores: np.ndarray) -> tuple[float, float]:
    """Von Neumann's sum on ranks as a z-value, its variance summed up pair of steps by pair of steps; and the kurtosis."""
    ranks = rankdata(kept(scores))
    n = len(ranks)
    if n < FEWEST or np.ptp(ranks) == 0:
        return 0.0, 1.8
    step = (ranks[:, None] - ranks[None, :]) ** 2
    one = np.sum(step) / (n * (n - 1))
    same = np.sum(step**2) / (n * (n - 1))
    sharing = apart = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                others = np.delete(np.arange(n), [i, j])
                sharing += step[i, j] * np.sum(step[j, others]) / (n * (n - 1) * (n - 2))
                apart += step[i, j] * np.sum(step[np.ix_(others, others)]) / (n * (n - 1) * (n - 2) * (n - 3))
    mean = (n - 1) * one
    variance = (n - 1) * same + 2 * (n - 2) * sharing + (n - 2) * (n - 3) * apart - mean**2
    return (mean - np.sum(np.diff(ranks) ** 2)) / math.sqrt(variance), float(kurtosis(ranks, fisher=False))


def rank_sum(recent: np.ndarray, spread: np.ndarray) -> tuple[float, float]:
    """The textbook's z of the rank-sum test with its correction for ties; and the kurtosis of the ranks."""
    ours, theirs = kept(recent), kept(spread)
    n1, n2 = len(ours), len(theirs)
    both = np.concatenate((ours, theirs))
    if min(n1, n2) < FEWEST or np.all(both == both[0]):
        return 0.0, 1.8
    ties = np.unique(both, return_counts=True)[1]
    n = n1 + n2
    variance = n1 * n2 / 12 * (n + 1 - float(np.sum(ties**3 - ties)) / (n * (n - 1)))
    ranks = rankdata(both)
    return (np.sum(ranks[:n1]) - n1 * (n + 1) / 2) / math.sqrt(variance), float(kurtosis(ranks, fisher=False))


# --- what they are -------------------------------------------------------------------------------


@settings(max_examples=60)
@given(scores_of(0, 40))
def test_serial_z_is_the_exact_deviate_over_all_orders(recent: np.ndarray) -> None:
    z, tails = bartels(recent)
    found = serial_z(recent)
    assert found == pytest.approx(pulled_in(z, (tails - 1.8) / math.sqrt(max(1, len(kept(recent))))), abs=1e-9)
    assert abs(found) <= abs(z) + 1e-9
    if tails <= 1.8:
        assert found == pytest.approx(z, abs=1e-9)


@settings(max_examples=100)
@given(scores_of(10, 60), scores_of(10, 60))
def test_drift_z_is_the_rank_sum_test(recent: np.ndarray, spread: np.ndarray) -> None:
    z, tails = rank_sum(recent, spread)
    found = drift_z(recent, spread)
    assert abs(found) <= abs(z) + 1e-9
    assert found * z >= 0
    n1, n2 = len(kept(recent)), len(kept(spread))
    if n1 == n2 or tails <= 1.8:
        assert found == pytest.approx(z, abs=1e-9)
    else:
        share = n1 / (n1 + n2)  # of the values, drawn without putting back
        skewness = math.sqrt(tails - 1.8) * abs(1 - 2 * share) / math.sqrt(n1 * (1 - share))
        assert found == pytest.approx(pulled_in(z, skewness), abs=1e-9)


@pytest.mark.parametrize("m", [FEWEST, 50, SAMPLE])
def test_without_ties_they_are_the_published_tests(m: int) -> None:
    rng = np.random.default_rng(m)
    recent, spread = rng.normal(size=m), rng.normal(0.2, 1, m + 7)
    ranks = rankdata(recent)
    ratio = np.sum(np.diff(ranks) ** 2) / np.sum((ranks - ranks.mean()) ** 2)
    variance = 4 * (m - 2) * (5 * m * m - 2 * m - 9) / (5 * m * (m + 1) * (m - 1) ** 2)  # Bartels 1982
    assert serial_z(recent) == pytest.approx((2 - ratio) / math.sqrt(variance), abs=1e-9)
    p = mannwhitneyu(recent, spread, use_continuity=False, method="asymptotic").pvalue
    assert 2 * norm.sf(abs(drift_z(recent, spread))) == pytest.approx(p)


@given(scores_of(20, 80), scores_of(20, 80))
def test_only_the_order_of_scores_counts(recent: np.ndarray, spread: np.ndarray) -> None:
    assert serial_z(-recent) == pytest.approx(serial_z(recent), abs=1e-9)
    assert serial_z(recent[::-1].copy()) == pytest.approx(serial_z(recent), abs=1e-9)
    assert drift_z(-recent, -spread) == pytest.approx(-drift_z(recent, spread), abs=1e-9)
    assert drift_z(spread, recent) == pytest.approx(-drift_z(recent, spread), abs=1e-9)
    ranks = {value: place for place, value in enumerate(np.unique(kept(np.concatenate((recent, spread)))))}
    places = [np.array([NAN if math.isnan(x) else ranks[x] for x in scores], float) for scores in (recent, spread)]
    assert serial_z(places[0]) == serial_z(recent)
    assert drift_z(*places) == drift_z(recent, spread)


@given(scores_of(0, 60), scores_of(0, 60), st.floats(0, 6))
def test_an_alarm_is_either_test_beyond_the_level(recent: np.ndarray, spread: np.ndarray, level: float) -> None:
    before = recent.copy(), spread.copy()
    expected = abs(serial_z(recent)) > level or abs(drift_z(recent, spread)) > level
    assert looks_ordered(recent, spread, level) == expected
    for untouched, now in zip(before, (recent, spread), strict=True):
        np.testing.assert_array_equal(untouched, now)


@pytest.mark.parametrize("skewness", [0.1, 0.3, 1.0, 2.0])
def test_a_skewed_deviate_is_pulled_in_to_the_normal_one_as_rare(skewness: float) -> None:
    for z in (2.0, 3.0, 5.0, 8.0):
        assert pulled_in(z, skewness) == pytest.approx(norm.isf(pearson3.sf(z, skewness)), abs=0.1)
        assert pulled_in(-z, skewness) == -pulled_in(z, skewness)
    assert pulled_in(0.5, skewness) == 0.5
    assert pulled_in(3.0, 0.0) == pulled_in(3.0, -0.1) == 3.0


# --- random order ----------------------------------------------------------------------------------

SETS = {
    "distinct": lambda rng: rng.normal(size=2 * SAMPLE),
    "short": lambda rng: rng.normal(size=2 * FEWEST),
    "four values": lambda rng: rng.integers(0, 4, 2 * SAMPLE) * 1.0,
    "mostly zero": lambda rng: np.floor(rng.exponential(0.8, 2 * SAMPLE)),
    "clusters": lambda rng: rng.choice([-9.0, 0.0, 1e6], 2 * SAMPLE) + np.round(rng.normal(size=2 * SAMPLE), 1),
    "infinite": lambda rng: rng.choice([-INF, 0.0, 1.0, INF], 2 * SAMPLE, p=[0.2, 0.3, 0.3, 0.2]),
    "half missing": lambda rng: np.where(rng.random(2 * SAMPLE) < 0.5, NAN, rng.random(2 * SAMPLE)),
}


def shuffled_zs(scores: np.ndarray, m: int, times: int, rng: np.random.Generator) -> np.ndarray:
    zs = np.empty((times, 2))
    for i in range(times):
        order = rng.permutation(scores)
        zs[i] = serial_z(order[:m]), drift_z(order[:m], order[m:])
    return zs


@pytest.mark.parametrize("name", SETS)
def test_standard_normal_in_random_order(name: str) -> None:
    rng = np.random.default_rng(11)
    scores = SETS[name](rng)
    zs = shuffled_zs(scores, len(scores) // 2, 4000, rng)
    assert np.all(np.abs(zs.mean(axis=0)) < 4 / math.sqrt(len(zs)))
    assert np.all(np.abs(zs.std(axis=0) - 1) < 0.05)
    within = np.mean(np.abs(zs) < 1.96, axis=0)
    assert np.all(np.abs(within - 0.95) < 0.025)  # few values make steps
    assert np.all(np.abs(zs) < LEVEL)


@pytest.mark.parametrize("rare", [1, 2, 3, 5, 9, 16, 30, 60])
@pytest.mark.parametrize("m", [SAMPLE, 64, FEWEST])
def test_few_odd_rows_in_random_order_raise_no_alarm(rare: int, m: int) -> None:
    rng = np.random.default_rng(rare)
    one_sided = np.zeros(m + SAMPLE)
    one_sided[:rare] = 1.0
    two_sided = one_sided.copy()
    two_sided[: rare // 2] = -1.0
    for scores in (one_sided, two_sided):
        zs = shuffled_zs(scores, m, 1500, rng)
        assert np.all(zs.std(axis=0) < 1.1)
        assert np.all(np.abs(zs) < LEVEL)


def test_odd_rows_side_by_side_would_be_far_out_uncorrected() -> None:
    recent = np.zeros(SAMPLE)
    recent[100:102] = 1.0  # one order in 128
    rng = np.random.default_rng(2)
    by_chance = [np.sum(np.diff(rng.permutation(recent)) ** 2) for _ in range(5000)]
    assert (np.mean(by_chance) - np.sum(np.diff(recent) ** 2)) / np.std(by_chance) > 6
    assert serial_z(recent) < 3.5
    recent[100:120] = 1.0  # a burst of twenty is no chance
    assert serial_z(recent) > LEVEL


def test_false_alarms_in_a_million_rows_are_fewer_than_a_tenth() -> None:
    assert SAMPLE == 256
    assert 2 * 10**6 / SAMPLE * 2 * norm.sf(LEVEL) < 0.1


# --- order -----------------------------------------------------------------------------------------


def looks(scores: np.ndarray, size: int) -> np.ndarray:
    """serial_z and drift_z at every SAMPLE-th row, from the first full window of `size` rows on."""
    zs = []
    for end in range(size, len(scores) + 1, SAMPLE):
        recent, older = scores[end - SAMPLE : end], scores[end - size : end - SAMPLE]
        spread = older[np.arange(SAMPLE) * len(older) // SAMPLE]
        zs.append((serial_z(recent), drift_z(recent, spread)))
        assert looks_ordered(recent, spread, LEVEL) == (max(map(abs, zs[-1])) > LEVEL)
    return np.array(zs)


def noticed(zs: np.ndarray) -> np.ndarray:
    return np.max(np.abs(zs), axis=1) > LEVEL


def autoregressive(rho: float, rows: int, seed: int) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=rows)
    for i in range(1, rows):
        scores[i] += rho * scores[i - 1]
    return scores


@pytest.mark.parametrize("phase", range(0, 2_000_000, 125_000))
def test_a_sine_is_noticed_at_every_phase(phase: int) -> None:
    scores = np.sin(2 * np.pi * np.arange(phase, phase + 110_000) / 2_000_000)
    zs = looks(scores, 100_000)
    assert np.all(zs[:, 0] > 15)


@pytest.mark.parametrize("size", [1000, 100_000])
def test_ramps_and_walks_are_noticed_at_every_look(size: int) -> None:
    i = np.arange(size + 20_000, dtype=float)
    for sign in (-1, 1):
        zs = looks(sign * i, size)
        assert np.all(zs[:, 0] > 15)
        assert np.all(sign * zs[:, 1] > 15)
    assert np.all(noticed(looks(np.cumsum(np.random.default_rng(size).normal(size=len(i))), size)))


def test_alternation_is_noticed_with_its_sign() -> None:
    rng = np.random.default_rng(4)
    scores = np.arange(20_000) % 2 + 0.5 * rng.normal(size=20_000)
    assert np.all(looks(scores, 10_000)[:, 0] < -LEVEL)


@pytest.mark.parametrize(("rho", "share"), [(0.3, 0.35), (-0.3, 0.35), (0.5, 0.97)])
def test_weak_dependence_is_noticed_within_a_few_looks(rho: float, share: float) -> None:
    zs = looks(autoregressive(rho, 70_000, seed=8), 10_000)
    assert np.sign(np.median(zs[:, 0])) == np.sign(rho)
    seen = noticed(zs)
    assert seen.mean() > share
    assert np.all(np.convolve(seen, np.ones(12), "valid") > 0)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_slow_ramp_under_noise_is_noticed_by_its_drift(sign: int) -> None:
    size = 100_000
    rng = np.random.default_rng(9)
    noise, i = rng.random(2 * size) * math.sqrt(12), np.arange(2 * size)
    # Half a deviation over the window is a quarter between its end and its middle: 0.25 * sqrt(SAMPLE / 2) = 2.8 at a look,
    # beyond the level at one look in thirty, and a window has 390.
    slight = looks(noise + sign * 0.5 * i / size, size)
    assert 2.4 < sign * slight[:, 1].mean() < 3.2
    assert np.count_nonzero(noticed(slight)) >= 3
    strong = looks(noise + sign * 1.5 * i / size, size)
    assert noticed(strong).mean() > 0.98
    assert not np.any(np.abs(strong[:, 0]) > LEVEL)  # neighbours do not show it


@pytest.mark.parametrize("length", [2, 10, 100, 1000])
def test_blocks_of_one_score_are_noticed(length: int) -> None:
    scores = np.repeat(np.random.default_rng(length).random(120_000 // length), length)
    seen = noticed(looks(scores, 50_000))
    # A look inside one long block sees equal scores, and a block near the median does not stand out.
    assert seen.mean() > (0.99 if length <= 100 else 0.7)


def test_steps_under_noise_are_noticed() -> None:
    rng = np.random.default_rng(12)
    scores = np.repeat(rng.choice([-1.0, 1.0], 120), 1000) + rng.normal(size=120_000)
    assert noticed(looks(scores, 50_000)).mean() > 0.9


# --- edges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, -3.5, INF, -INF, NAN])
def test_constant_or_missing_scores_say_nothing(value: float) -> None:
    same = np.full(SAMPLE, value)
    assert serial_z(same) == drift_z(same, same) == 0.0
    assert not looks_ordered(same, same, LEVEL)
    assert serial_z(np.empty(0)) == drift_z(np.empty(0), same) == drift_z(same, np.empty(0)) == 0.0


def test_too_few_scored_rows_say_nothing() -> None:
    rising, full = np.full(SAMPLE, NAN), np.arange(SAMPLE) - 1000.0
    places = np.arange(0, SAMPLE, 16)[: FEWEST - 1]
    rising[places] = places
    assert serial_z(rising) == drift_z(rising, full) == drift_z(full, rising) == 0.0
    rising[1] = 0.5
    assert serial_z(rising) > 3
    assert drift_z(rising, full) > 3


def test_missing_scores_are_left_out_and_infinities_rank() -> None:
    rng = np.random.default_rng(5)
    recent, spread = rng.normal(size=100), rng.normal(1, 1, 90)
    gaps = np.full(250, NAN)
    gaps[np.sort(rng.choice(250, 100, replace=False))] = recent
    assert serial_z(gaps) == serial_z(recent)
    assert drift_z(gaps, spread) == drift_z(recent, spread)
    assert drift_z(spread, gaps) == drift_z(spread, recent)
    outer = recent.copy()
    outer[np.argmax(recent)], outer[np.argmin(recent)] = INF, -INF
    assert serial_z(outer) == serial_z(recent)
    runs = np.repeat([-INF, INF, -INF, INF], 64)
    assert serial_z(runs) > 14
    assert drift_z(np.full(SAMPLE, -INF), np.full(SAMPLE, INF)) < -20


# --- real streams ------------------------------------------------------------------------------------

# file, column, window, and the share of looks that must notice; several rooms interleaved hide each other's slow changes
SENSORS = [
    ("intel_lab_halfhourly", "temperature", 3000, 0.95),
    ("intel_lab_halfhourly", "humidity", 3000, 0.95),
    ("sensorscope_temp_57cells_934cycles", "temperature", 10_000, 0.95),
    ("sensorscope_week_200701", "temperature", 5000, 0.9),
    ("sensorscope_week_200701", "humidity", 5000, 0.95),
    ("beijing_air_quality_prsa", "PM2.5", 10_000, 0.9),
    ("beijing_air_quality_prsa", "TEMP", 10_000, 0.98),
    ("berkeley_sdh_rooms_2013", "temperature", 10_000, 0.4),
    ("berkeley_sdh_rooms_2013", "light", 10_000, 0.4),
]


@pytest.mark.data
@pytest.mark.parametrize(("file", "column", "size", "share"), SENSORS)
def test_sensors_are_noticed_and_their_shuffles_are_not(file: str, column: str, size: int, share: float) -> None:
    import pyarrow.parquet as pq

    folder = real_folder()
    assert folder is not None
    scores = pq.read_table(folder / f"{file}.parquet", columns=[column])[column].to_numpy().astype(float)
    seen = noticed(looks(scores, size))
    assert seen.mean() > share
    assert not np.any(noticed(looks(np.random.default_rng(6).permutation(scores), size)))
