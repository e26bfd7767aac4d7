"""New identities as far apart as people: calibration, what it cannot mend, and nobody's voice."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import yaml

from steps.anonymisers.registry import describe_system
from steps.generators.base import Generator, Wanted, load_generator, units
from steps.generators.training import (
    Calibration,
    TrainingVectors,
    load_trained,
    mean_cosine,
    n_directions,
    of_everybody,
    problem_of,
    sanity_figures,
    train_generator,
)
from steps.sources import VoiceKey
from tests.refusals import refuses
from tests.world import around, run_of
from utils.settings import list_settings

NETWORK = {"identity": 64, "width": 48}
TRAINING = {"steps": 120, "learning_rate": 0.003}


def people(n: int = 40, each: int = 4, d: int = 24, common: float = 6.0) -> TrainingVectors:
    """Speakers who have much in common, as Resemblyzer's, and differ unevenly, two values never."""
    rng = np.random.default_rng(1)
    widths = np.r_[2.0 / np.arange(1, d - 1), 0, 0]
    voices = common / np.sqrt(d) + widths * rng.standard_normal((n, d))
    return around(voices, each, rng, 0.2 * (widths > 0))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calibrated")
    values = {"generator": "idmap_mlp", "network": NETWORK, "training": TRAINING}
    train_generator(values, "conf.yaml", people(), folder, seed=0)
    return folder


def voices(trained: Path, n: int = 300, **settings: object) -> tuple[np.ndarray, list[dict]]:
    made = load_generator({"name": "idmap_mlp", **settings}, run_of(generator=trained))
    return generate_many(made, n)


def generate_many(made: Generator, n: int) -> tuple[np.ndarray, list[dict]]:
    keys = (VoiceKey("spk", ("test", str(i))) for i in range(n))
    vectors, rows = zip(*(made.generate(Wanted(key)) for key in keys), strict=True)
    return np.stack(vectors), list(rows)


def test_of_two_gaussians_by_hand():
    """Deviations 4 and 6 to 2 and 9: the first is halved, the second grows by a half; and moved."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((4000, 2))
    points = (points - points.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(points.T))).T
    made = Calibration(2)
    made.fit((points * [2, 9] + [1, -1]).astype(np.float32), (points * [4, 6]).astype(np.float32))
    expected = [[1, -1], [1 + 2, -1 + 9]]
    found = made.in_use()(np.float32([[0, 0], [4, 6]]))
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_directions_that_a_network_hardly_learned_stayed_too_narrow():
    """As those of a WGAN: a deviation 1/40 of others became 0.64 of people's."""
    points = np.random.default_rng(0).standard_normal((4000, 8)).astype(np.float32)
    made = Calibration(8)
    made.fit(points, narrow := points * np.float32([1, 1, 1, 1, 1, 1, 1, 1 / 40]))
    np.testing.assert_allclose(made.in_use()(narrow).std(axis=0), points.std(axis=0), rtol=0.08)


def test_voices_of_few_speakers_were_more_alike_than_people():
    """1.8 times people's share of pairs with 40 speakers: their covariance is too uneven."""
    rng, widths = np.random.default_rng(0), 1.0 / np.sqrt(np.arange(1, 101))
    everybody = np.sum(widths**4) / np.sum(widths**2) ** 2  # mean squared cosine of two of them
    plain, mended = [], []
    for _ in range(20):
        speakers = widths * rng.standard_normal((40, 100))
        found = np.linalg.eigvalsh(np.cov(speakers.T))[-39:]
        for values, into in ((found, plain), (of_everybody(found, 40), mended)):
            into.append(np.sum(values**2) / np.sum(values) ** 2)
            assert values.sum() == pytest.approx(found.sum())
    assert np.mean(plain) > 1.35 * everybody
    assert np.mean(mended) == pytest.approx(everybody, rel=0.1)
    # n = 2, variances 4 and 1: 4 / (1 * 4) * (17 - 25 / 2) = 4.5 is less than the even 12.5
    np.testing.assert_allclose(of_everybody(np.array([4.0, 1.0]), 3), [2.5, 2.5])
    # n = 101: 101^2 / (100 * 103) * (17 - 25 / 101) = 16.5916; less 12.5, over 4.5: 0.90925
    np.testing.assert_allclose(of_everybody(np.array([1.0, 4.0]), 102), [1.0697, 3.9303], atol=1e-4)
    for alone in (np.array([3.0]), np.array([2.0, 2.0])):
        np.testing.assert_array_equal(of_everybody(alone, 2), alone)


def test_new_identities_fell_together(trained):
    """Mean cosine 0.88 with Resemblyzer, where real speakers have 0.58."""
    real = people().means.astype(np.float64)
    raw, used = (voices(trained, norm=norm, tries=1)[0] for norm in ("raw", "calibrated"))
    assert mean_cosine(raw) > mean_cosine(real) + 0.1
    assert mean_cosine(used) == pytest.approx(mean_cosine(real), abs=0.03)
    assert np.std(used, axis=0) == pytest.approx(np.std(real, axis=0), rel=0.35, abs=0.07)
    closest = np.quantile((units(real) @ units(real).T)[np.triu_indices(len(real), 1)], 0.98)
    share = np.mean((units(used) @ units(used).T)[np.triu_indices(len(used), 1)] > closest)
    assert 0.005 < share < 0.06


def test_a_pseudo_speaker_was_somebody(trained):
    """A voice nearer to a training speaker than two recordings of one person is drawn again."""
    folder = load_trained(trained)
    limit = np.quantile([row["nearest"] for row in voices(trained, tries=1)[1]], 0.6)
    made = load_generator({"name": "idmap_mlp"}, run_of(generator=trained))
    made._trained = dataclasses.replace(folder, same_person=float(limit))
    vectors, rows = generate_many(made, 100)
    seen = units(folder.model.vectors(np.arange(40)).astype(np.float64))
    nearest = (units(vectors) @ seen.T).max(axis=1)
    np.testing.assert_allclose(nearest, [row["nearest"] for row in rows], atol=1e-3)
    assert nearest.max() <= limit + 1e-3 and max(row["tries"] for row in rows) > 1
    assert len({row["identity_index"] for row in rows}) == 100 and not made.notes
    made._trained = dataclasses.replace(folder, same_person=-1.0)
    made.generate(Wanted(VoiceKey("const")))
    assert "tries: for some keys all 100 voices" in made.notes[0]
    made._trained = dataclasses.replace(folder, same_person=float("nan"))
    assert made.generate(Wanted(VoiceKey("const")))[1]["tries"] == 1
    assert "nobody whom it was trained on has two x-vectors" in made.notes[1]


def test_a_check_called_vectors_calibrated_that_were_not(trained):
    """Mean cosine 0.94 where it is 0.84: the last check tells what generator.yaml tells."""
    header, *_, last = (trained / "training.tsv").read_text().lstrip("#").splitlines()
    checked = dict(zip(header.split("\t"), last.split("\t"), strict=True))
    told = yaml.safe_load((trained / "generator.yaml").read_text())["trained"]
    for name in ("cosine_unseen", "cosine_used", "centred_used", "near_used"):
        assert float(checked[name]) == pytest.approx(told[name], abs=1e-4), name


def test_a_collapsed_generator_was_called_trained(trained):
    model, data = load_trained(trained).model, people()
    fine = sanity_figures(model, data)
    assert problem_of(fine, model.norm_limits) == ""
    assert fine["centred_used"] == pytest.approx(0, abs=0.03)
    assert "collapsed" in problem_of({**fine, "deviation_unseen": 0.01}, model.norm_limits)
    assert "directions" in problem_of({**fine, "dimensions_unseen": 0.1}, model.norm_limits)
    assert "cosine of 0.5" in problem_of({**fine, "centred_used": 0.5}, model.norm_limits)


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("few_indices")
@pytest.mark.parametrize(
    ("generator", "network", "training"),
    [("idmap_mlp", NETWORK, {**TRAINING, "weight_decay": 100}),  # all are one
     ("idmap_diff", {**NETWORK, "sizes": [48, 24, 12]}, {"steps": 120, "weight_decay": 100}),
     ("wgan", {"noise": 2}, {"steps": 60, "batch": 16, "learning_rate": 0.03})],  # all on a line
)  # fmt: skip
def test_a_generator_that_collapses_in_training_is_an_error(
    generator, network, training, tmp_path, caplog
):
    """Voices of Diff and WGAN lay on one line, which two or three directions did not show."""
    values = {"generator": generator, "network": network, "training": training}
    said = "they have collapsed into one: trained too little"
    refuses(said, train_generator, values, "conf.yaml", people(), tmp_path, seed=0)
    assert not (tmp_path / "final.pt").exists()
    for told in ("deviation_unseen", "centred_used", "cosine_real", "not usable yet: the voices"):
        assert told in caplog.text


def test_directions_by_hand():
    corners = np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
    assert n_directions(corners) == pytest.approx(2.0)
    assert n_directions(corners * [1, 0, 0]) == pytest.approx(1.0)
    assert n_directions(np.ones((3, 4))) == 1.0


def test_two_recordings_of_one_person_by_hand():
    vectors = np.array([[1, 0], [0, 2], [3, 0], [3, 3]], dtype=np.float32)
    data = TrainingVectors(("a", "b"), vectors, np.array([0, 0, 0, 1]))
    assert data.same_person == pytest.approx(0.0)  # of 0, 1 and 0
    lone = TrainingVectors(("a", "b"), vectors[2:], np.array([0, 1]))
    assert np.isnan(lone.same_person)


def test_variants_of_a_generator_overwrote_each_other():
    """A system names the file that its generator is trained by; every such file is there."""
    folder = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf"
    found = {}
    for name in list_settings(folder / "systems"):
        needs = describe_system(folder / f"systems/{name}.yaml").needs
        if trained := [need.split(":")[1] for need in needs if need.startswith("generator:")]:
            found[name] = trained[0]
            assert (folder / f"generators/{trained[0]}.yaml").is_file()
    assert found["idmap_mlp_raw"] == "idmap_mlp_raw"
    shared = ("psd", "bn_")
    own = [made for who, made in found.items() if not any(part in who for part in shared)]
    assert len(own) == len(set(own)) >= 7
