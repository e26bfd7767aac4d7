"""Pseudo-speakers chosen from a pool, on pools whose right answer is known beforehand."""

import sys

import numpy as np
import pytest

from steps.generators import pool as clusters_module
from steps.generators import sampling
from steps.generators.base import Wanted, choose_gender, describe_generator, load_generator
from steps.generators.sampling import read_speaker_settings
from steps.sources import Resources, VoiceKey, make_keys
from steps.speaker.backends import PldaBackend, write_backend
from steps.speaker.vectors import Plda
from tests.recipes import ROOT, run_words
from tests.refusals import refuses
from tests.world import run_of
from utils.seeds import Draws, make_rng

NAMES = ("random", "farthest", "average", "dense", "constant")
KEY = VoiceKey("spk", ("set", "s"), ("set", "s"))
KEYS = [VoiceKey("spk", ("set", str(i)), ("set", str(i))) for i in range(40)]
SOURCE = np.array([1.0, 0.0])
# The angle to the source in degrees; f and m in turn. Lengths differ, and do not matter.
ANGLES = {f"{'fm'[i % 2]}{i:02d}": 10 + 14 * i for i in range(12)}
OFFSET = np.array([-3.0, 0.0])  # what centring has to take away


def fan(offset=0.0):
    """The pool of 12 for `fit`: around the source like a fan, one direction each."""
    angles = np.radians(list(ANGLES.values()))
    lengths = np.linspace(1, 2, 12)[:, None]
    vectors = lengths * np.stack([np.cos(angles), np.sin(angles)], axis=1) + offset
    return vectors, list(ANGLES), [speaker[0] for speaker in ANGLES]


def islands():
    """12 speakers on 4 islands: 5 (f), 4 (m), 2 (f) and 1 (f), which have nothing in common.

    The first of an island is its middle; the last of the first two has the other gender.
    """
    places = [0] * 5 + [1] * 4 + [2] * 2 + [3]
    genders = "ffffm" + "mmmf" + "ff" + "f"
    axes = np.vstack([np.eye(3, 7), -np.ones(7) * (np.arange(7) < 3)])
    noise = 0.1 * np.random.default_rng(0).standard_normal((12, 7)) * (np.arange(7) >= 3)
    noise[[0, 5]] = 0
    return axes[places] + noise, [f"s{i:02d}" for i in range(12)], list(genders)


def make(name, pool=None, seed=0, draw=0, backend=None, **settings):
    if name not in ("random", "constant"):
        settings.setdefault("distance", "cosine")
    values = {"name": name, **settings}
    generator = load_generator(values, run_of("x.yaml", seed, draw, backend=backend))
    assert describe_generator(values, "x.yaml") == generator.needs
    if pool is not None:
        generator.fit(*pool)
    return generator


def chosen(generator, key=KEY, x=SOURCE, **options):
    """The set of speakers, after a check that y is the mean of just these."""
    y, info = generator.generate(Wanted(key, x, **options))
    speakers = info["speakers"].split(",")
    of = generator.pool
    rows = [of.vectors[of.speakers.index(speaker)] for speaker in speakers]
    assert y.dtype == np.float64
    np.testing.assert_allclose(y, np.mean(rows, axis=0), rtol=1e-14, atol=1e-14)
    assert len(speakers) == len(set(speakers)) == info["averaged"]
    return set(speakers)


@pytest.fixture
def plda(tmp_path):
    """A folder with PLDA that takes the offset away and then orders by angle."""
    plda = Plda(np.zeros(2), np.eye(2), np.full(2, 4.0))
    write_backend(tmp_path, PldaBackend(OFFSET, np.eye(2), plda))
    return tmp_path


def of_sizes(name, n, averaged=None):
    """Settings of a generator that takes n candidates, and averages all, or so many, of them."""
    sizes = {"averaged": averaged or n, "candidates": n}
    known = {"random": ("averaged",), "farthest": sizes}.get(name, ())
    return {"cohort": n} if name == "average" else {key: sizes[key] for key in known}


@pytest.mark.parametrize(
    ("name", "target_gender", "expected"),
    [
        ("farthest", "f", ["f06", "f08", "f10"]),
        ("farthest", "m", ["m07", "m09", "m11"]),
        ("farthest", None, ["f10", "m09", "m11"]),
        ("average", "f", ["f06", "f08", "f10"]),
        ("average", None, ["f10", "m09", "m11"]),
    ],
)  # fmt: skip
def test_farthest_of_a_gender(name, target_gender, expected, plda):
    """A2. The source's own gender (f) plays no part: cross-gender is a target gender."""
    settings, options = of_sizes(name, 3), {"gender": target_gender}
    assert chosen(make(name, fan(), **settings), **options) == {*expected}
    moved = make(name, fan(OFFSET), distance="plda", backend=plda, **settings)
    assert moved.needs == ("xvectors", "backend")
    assert chosen(moved, x=SOURCE + OFFSET, **options) == {*expected}
    # without centring another order: the expected sets do not come by themselves
    by_cosine = chosen(make(name, fan(OFFSET), **settings), x=SOURCE + OFFSET, **options)
    assert by_cosine != {*expected}


@pytest.mark.parametrize("name", ["random", "farthest", "dense"])
def test_a_draw_depends_on_seed_number_and_key_only(name):
    settings = {"averaged": 2} if name != "dense" else {}
    pool, x = islands(), np.eye(7)[1]

    def run(order=1, **options):
        generator = make(name, pool, **settings, **options)
        return [chosen(generator, key, x) for key in KEYS[::order]][::order]

    assert run() == run(order=-1) == run(seed=0, draw=0)
    assert run() != run(draw=1) != run(seed=1) != run()
    assert make(name, pool, **settings).is_random
    if name == "random":  # the draw that is documented
        rng = make_rng(0, "random", "draw 0", "spk", "set", "0")
        expected = {f"s{i:02d}" for i in rng.choice(12, 2, replace=False)}
        assert run()[0] == expected


def test_a_draw_among_both_genders_that_nobody_makes_was_sampled_for_ever(monkeypatch, tmp_path):
    monkeypatch.setattr(sampling, "load_pool", lambda *_: fan())
    for gender, is_random in (("same", False), ("any", True)):
        values = {"generator": {"name": "random", "averaged": 8}, "gender": gender}
        settings, no_data = read_speaker_settings(values, "x.yaml"), None
        made = settings.load(tmp_path / "x.yaml", Draws(), Resources(), tmp_path, no_data)
        assert made.is_random == is_random


@pytest.mark.parametrize("name", NAMES)
def test_the_source_is_never_his_own_pseudo_speaker(name):
    pool = islands()
    given = of_sizes(name, 12)
    if name == "dense":
        given = {"proportion": 1.0, "clusters": 2, "exclude_closest_cluster": False}
    generator = make(name, pool, **given)
    for place, own in enumerate(pool[1]):
        for key in KEYS[:10]:
            wanted = Wanted(key, pool[0][place], exclude=[own, "not in the pool"])
            y, info = generator.generate(wanted)
            assert own not in info["speakers"].split(",")
            assert np.isfinite(y).all()
    if given and "clusters" not in given:
        assert info["averaged"] == 11
        assert "source who is also in the pool" in " ".join(generator.notes)


def test_dense_clusters():
    """A2. Near the 5: they are out, so 2 of gender f are the densest."""
    x, one = np.eye(7)[0], {"clusters": 1, "proportion": 1.0}
    dense = make("dense", islands(), **one)
    assert [len(cluster.members) for cluster in dense.clusters] == [5, 4, 2, 1]
    assert chosen(dense, x=x, gender="f") == {"s09", "s10"}
    # by the exemplar's gender, so a member of the other gender comes along
    assert chosen(dense, x=x, gender="m") == {"s05", "s06", "s07", "s08"}
    assert chosen(dense, x=np.eye(7)[2], gender="f") == {f"s{i:02d}" for i in range(5)}
    assert not dense.is_random and not dense.notes
    kept = make("dense", islands(), exclude_closest_cluster=False, **one)
    assert kept.needs == ()
    assert chosen(kept, x=None, gender="f") == {f"s{i:02d}" for i in range(5)}


def test_half_of_a_cluster_is_drawn_and_one_is_one():
    generator = make("dense", islands(), exclude_closest_cluster=False)
    keys = make_keys("utt", {f"u{i}": "s" for i in range(30)}, "set")
    sizes = {}
    for key in KEYS:
        _, info = generator.generate(Wanted(key, gender="f"))
        sizes[info["cluster_size"]] = info["averaged"]
    assert sizes == {1: 1, 2: 1, 5: 3}
    assert generator.notes == ["dense: clusters: 10 asked, but fewer clusters of gender f are left"]
    x = np.eye(7)[2]
    dense = make("dense", islands(), clusters=1)
    drawn = [frozenset(chosen(dense, key, x, gender="f")) for key in keys.values()]
    assert len(set(drawn)) > 5  # of the 10 ways to draw 3 of 5
    many = make("dense", islands(), exclude_closest_cluster=False)
    clusters = {many.generate(Wanted(key, x))[1]["cluster"] for key in keys.values()}
    assert len(clusters) == 1  # one a speaker
    tenth = make("dense", islands(), clusters=1, proportion=0.4)  # 0.4 * 5 is 2, not above it
    assert len(chosen(tenth, x=x, gender="f")) == 2


def test_clusters_that_do_not_settle(monkeypatch, plda):
    """By PLDA: cosine, and it is said. By cosine: an error."""
    real, calls = clusters_module.find_clusters, []

    def first_fails(affinities, *options):
        calls.append(affinities)
        return None if len(calls) == 1 else real(affinities, *options)

    monkeypatch.setattr(clusters_module, "find_clusters", first_fails)
    settings = {"damping": 0.9, "clusters": 1, "proportion": 1.0}
    generator = make("dense", fan(), distance="plda", backend=plda, **settings)
    speakers = chosen(generator)
    assert generator.notes[0].startswith("dense: the clusters of the PLDA affinities do not settle")
    unit = generator.pool.vectors / np.linalg.norm(generator.pool.vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(calls[1], unit @ unit.T, atol=1e-12)
    assert speakers == chosen(make("dense", fan(), **settings))
    monkeypatch.undo()
    once = make("dense", fan(), max_iterations=1)
    said = "of the pool's 12 speakers do not settle; give a larger"
    refuses(said, once.generate, Wanted(KEY, SOURCE))
    pair = (np.eye(2), ["a", "b"], ["f", "f"])
    refuses("more speakers", make("dense", pair).generate, Wanted(KEY, SOURCE))


def test_order_of_the_pool_does_not_matter():
    vectors, speakers, genders = islands()
    order = np.random.default_rng(1).permutation(12)
    shuffled = vectors[order], [speakers[i] for i in order], [genders[i] for i in order]
    x = np.eye(7)[0] + 0.1
    for name in NAMES:
        settings = {"constant": {"clusters": 3, "target": 5}}.get(name, {})
        settings |= of_sizes(name, 5, 3)
        one, two = make(name, islands(), **settings), make(name, shuffled, **settings)
        for key in KEYS[:20]:
            for gender in ("f", "m", None):
                got = [g.generate(Wanted(key, x, gender=gender)) for g in (one, two)]
                assert got[0][1] == got[1][1], name
                np.testing.assert_array_equal(got[0][0], got[1][0])


def blobs():
    """20 blobs of 6 speakers a gender in 8 dimensions, and who is nearest to the mean of each."""
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((40, 1, 8)) * 10 + 0.3 * rng.standard_normal((40, 6, 8))
    distances = np.linalg.norm(vectors - vectors.mean(axis=1, keepdims=True), axis=2)
    nearest = [f"s{6 * blob + i:03d}" for blob, i in enumerate(distances.argmin(axis=1))]
    genders = ["f"] * 120 + ["m"] * 120
    return (vectors.reshape(240, 8), [f"s{i:03d}" for i in range(240)], genders), nearest


def test_constant_targets_are_the_real_speakers_nearest_to_the_centroids():
    """A4: 20 + 20, females first, stable under the seed."""
    pool, nearest = blobs()
    for seed in (0, 1):
        generator = make("constant", pool, seed=seed)
        first = [pool[1][ranking[0]] for ranking in generator.targets]
        assert first == nearest
        genders = [generator.pool.genders[ranking[0]] for ranking in generator.targets]
        assert genders == ["f"] * 20 + ["m"] * 20
    assert not generator.notes and not generator.is_random and generator.needs == ()
    for number in (1, 20, 21, 40):
        generator = make("constant", pool, target=number)
        for key in (KEY, VoiceKey("utt", ("set", "u"))):
            y, info = generator.generate(Wanted(key, np.zeros(8), "m"))
            assert info["speakers"] == nearest[number - 1] and info["target"] == number
            np.testing.assert_array_equal(y, pool[0][pool[1].index(nearest[number - 1])])
    y[:] = 0  # a copy: the pool stays
    assert generator.generate(Wanted(KEY))[0].any()


def test_constant_targets_of_a_small_pool():
    generator = make("constant", fan(), target=7)
    assert generator.generate(Wanted(KEY))[1]["speakers"] == "m01"  # all are targets, 6 + 6
    assert "pool has 6 speakers of gender f: all are targets" in generator.notes[0]
    said = r"x.yaml: generator.target: 13; a number from 1 to 12"
    refuses(said, make, "constant", fan(), target=13)
    twins = np.ones((4, 2)), list("abcd"), list("ffmm")
    with pytest.warns(UserWarning, match="distinct"):  # scikit-learn's
        assert "nearest to two centroids: a, c" in make("constant", twins, clusters=2).notes[0]


def test_gender_policies():
    assert [choose_gender("same", g, make_rng(0)) for g in "fm"] == ["f", "m"]
    assert [choose_gender("other", g, make_rng(0)) for g in "fm"] == ["m", "f"]
    coins = [choose_gender("random", None, make_rng(0, str(i))) for i in range(200)]
    assert 70 < coins.count("f") < 130
    for policy in ("same", "other"):
        refuses("spk2gender", choose_gender, policy, None, make_rng(0))
        tossed = [choose_gender(policy, "other", make_rng(0, str(i))) for i in range(200)]
        assert tossed == coins


def test_bad_pools_and_sources(plda):
    vectors, speakers, _ = fan()
    females, unknown = ["f"] * 12, [None] * 12
    for name in NAMES:
        for said, gender, genders in (
            ("of gender m: it lacks this gender", "m", females), ("has no genders", "f", unknown),
        ):  # fmt: skip
            pool, wanted = (vectors, speakers, genders), Wanted(KEY, SOURCE, gender=gender)
            refuses(said, lambda n, p, w: make(n, p).generate(w), name, pool, wanted)
        refuses("pool: no speaker is in it", make, name, (np.zeros((0, 2)), [], []))
    for name in ("farthest", "average", "dense"):
        generator = make(name, fan(), **({"damping": 0.9} if name == "dense" else {}))
        refuses("x-vector of the source speaker is needed", generator.generate, Wanted(KEY))
        refuses("has 3 values, and the pool's have 2", generator.generate, Wanted(KEY, np.ones(3)))
        wide, by_plda = (np.ones((12, 3)), speakers, females), {"distance": "plda"}
        refuses("x.yaml: generator.distance: plda: .* needs --backend DIR", make, name, **by_plda)
        said = "back end is for x-vectors of 2 values"
        refuses(said, make, name, wide, backend=plda, **by_plda)
    for name in ("random", "farthest", "constant"):
        alone = np.ones((2, 2)), ["a", "b"], ["f", "m"]
        wanted = Wanted(KEY, SOURCE, gender="f", exclude=["a"])
        refuses("but the source", make(name, alone).generate, wanted)


def test_a_pool_of_one_cluster_gives_it_and_says_so():
    """With 12 speakers, dense lost every utterance of a gender that had one cluster."""
    alone = make("dense", (np.ones((1, 2)), ["a"], ["f"]))
    y, info = alone.generate(Wanted(KEY, SOURCE, gender="f"))
    assert (y.tolist(), info["speakers"]) == ([1.0, 1.0], "a")
    assert any("the source's own cluster had to be taken" in note for note in alone.notes)
    wanted = Wanted(KEY, SOURCE, gender="f", exclude=["a"])
    refuses("1 clusters, but no clusters of gender f", alone.generate, wanted)


@pytest.mark.slow
def test_what_a_system_needs_is_told_without_torch():
    """A recipe asks it of every system, in a process of its own."""
    code = (
        "import sys, pathlib; from steps.anonymisers.registry import describe_system;"
        "from utils.settings import list_settings;"
        "confs = pathlib.Path('egs/TEMPLATE/conf/systems');"
        "told = [describe_system(confs / f'{n}.yaml').needs for n in list_settings(confs)];"
        "sys.exit('torch' in sys.modules or not any('generator:psd' in needs for needs in told))"
    )
    run_words([sys.executable, "-c", code], 0, cwd=ROOT)
