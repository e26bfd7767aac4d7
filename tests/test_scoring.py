"""Trial and pair scores: joined by id, complete or refused, the same by every way."""

import numpy as np
import pytest

from steps import score_pairs, score_trials
from steps.speaker import backends
from steps.speaker.backends import CosineBackend, load_normalised, read_segments, train_backend
from tests.making import write_archive
from tests.refusals import refuses
from utils.tables import write_map
from utils.trials import read_scores, read_trials

UTTS = [f"{spk}-{n:02d}" for spk in ("p1", "p10", "p2") for n in range(4)]
UTT2SPK = {utt: utt.split("-")[0] for utt in UTTS}


@pytest.fixture
def folder(tmp_path):
    """x-vectors of 12 utterances (o/), protected ones (p/), 3 enrolled speakers, a PLDA, trials."""
    rng = np.random.default_rng(0)
    for name in ("o", "p"):
        write_archive(tmp_path / name / "xvector", {u: rng.standard_normal(6) for u in UTTS})
    enrolled = {spk: rng.standard_normal(6) for spk in ("p1", "p10", "p2")}
    write_archive(tmp_path / "e" / "spk_xvector", enrolled)
    write_map(tmp_path / "e" / "num_utts.ark", {"p1": 1, "p10": 5, "p2": 2})
    many = {f"s{i // 5:02d}-{i}": rng.standard_normal(6) + i // 5 for i in range(100)}
    backends.write_backend(
        tmp_path / "plda", train_backend(many, {u: u.split("-")[0] for u in many}, 4)
    )
    kinds = ("nontarget", "target")
    lines = [f"{spk} {u} {kinds[UTT2SPK[u] == spk]}" for spk in enrolled for u in UTTS]
    (tmp_path / "trials").write_text("\n".join(reversed(lines)) + "\n")
    write_map(tmp_path / "utt2spk", UTT2SPK)
    return tmp_path


def run_trials(folder, backend, out="scores", enrol="e", trial="o", trials="trials"):
    paths = [str(folder / name) for name in (enrol, trial, trials, out)]
    return score_trials.main(["--backend", backend, *paths])


def run_pairs(folder, backend, rows="o", columns="o"):
    paths = [str(folder / name) for name in (rows, columns, "pt", "ps")]
    utt2spk = ["--utt2spk", str(folder / "utt2spk")]
    return score_pairs.main(["--backend", backend, *utt2spk, *paths])


def as_dict(scores):
    pairs = zip(scores.enrol, scores.trial, strict=True)
    return dict(zip(pairs, scores.score.tolist(), strict=True))


def test_cosine_scores_are_cosines(folder):
    run_trials(folder, "cosine")
    scores = as_dict(read_scores(folder / "scores"))
    enrol = read_segments(folder / "e" / "spk_xvector.scp").vectors
    trial = read_segments(folder / "o").vectors
    assert len(scores) == 36
    for (e, t), score in scores.items():
        norms = np.linalg.norm(enrol[e]) * np.linalg.norm(trial[t])
        assert score == pytest.approx(enrol[e] @ trial[t] / norms, abs=1e-6)
    lines = (folder / "scores").read_text().splitlines()
    assert lines == sorted(lines)


def test_plda_scores_use_the_number_of_enrolled_utterances(folder):
    run_trials(folder, str(folder / "plda"))
    first = as_dict(read_scores(folder / "scores"))
    write_map(folder / "e" / "num_utts.ark", {"p1": 1, "p10": 1, "p2": 2})
    run_trials(folder, str(folder / "plda"))
    second = as_dict(read_scores(folder / "scores"))
    changed = {e for (e, t), score in first.items() if abs(score - second[e, t]) > 1e-9}
    assert changed == {"p10"}


def test_silent_failure_10_a_missing_key_is_an_error_that_names_it(folder):
    """Kaldi's ivector-plda-scoring warns, leaves the trial out and exits 0."""
    extra = "p3 p1-00 nontarget\np1 p9-00 nontarget\np1 p9-01 nontarget\n"
    with (folder / "trials").open("a") as stream:
        stream.write(extra)
    message = refuses("not all trials", run_trials, folder, "cosine")
    assert f"1 of 4 enrolment ids are not in {folder / 'e'} (p3)" in message
    assert f"2 of 14 trial ids are not in {folder / 'o'} (p9-00 p9-01)" in message
    assert not (folder / "scores").exists()


def test_silent_failure_10_a_model_without_count_is_an_error(folder):
    write_map(folder / "e" / "num_utts.ark", {"p1": 1, "p2": 2})
    refuses(r"num_utts of .* \(p10\)", run_trials, folder, "cosine")


def test_silent_failure_16_scores_go_with_ids_not_with_places(folder):
    """The same trials and x-vectors in other orders give each pair the same score."""
    run_trials(folder, str(folder / "plda"))
    expected = as_dict(read_scores(folder / "scores"))
    vectors = read_segments(folder / "o").vectors
    order = np.random.default_rng(1).permutation(len(UTTS))
    write_archive(folder / "shuffled" / "xvector", {UTTS[i]: vectors[UTTS[i]] for i in order})
    scp = (folder / "shuffled" / "xvector.scp").read_text().splitlines()
    (folder / "shuffled" / "xvector.scp").write_text("\n".join(reversed(scp)) + "\n")
    lines = (folder / "trials").read_text().splitlines()
    np.random.default_rng(2).shuffle(lines)
    (folder / "other").write_text("\n".join(lines) + "\n")
    run_trials(folder, str(folder / "plda"), trial="shuffled", trials="other", out="again")
    again = as_dict(read_scores(folder / "again"))
    assert again.keys() == expected.keys()
    for pair, score in expected.items():
        assert again[pair] == pytest.approx(score, abs=1e-12)


def test_enrolment_may_be_an_utterance(folder):
    (folder / "trials").write_text("p1-00 p1-01 target\np1-00 p2-00 nontarget\n")
    run_trials(folder, "cosine", enrol="o/xvector.scp")
    assert len(read_scores(folder / "scores")) == 2


def test_xvectors_of_another_encoder_are_refused(folder):
    write_archive(folder / "long" / "xvector", {u: np.ones(7) for u in UTTS})
    refuses(r"6 dimensions.*of 7", run_trials, folder, "cosine", trial="long")
    refuses(r"6 dimensions.*of 7", run_pairs, folder, "cosine", columns="long")
    said = "7 dimensions, the back end is for 6"
    refuses(said, run_pairs, folder, str(folder / "plda"), "long", "long")


def test_missing_inputs_say_what_makes_them(folder):
    said = r"spk_xvector\.scp: is missing.*average_xvectors\.py"
    refuses(said, run_trials, folder, "cosine", enrol="o")
    refuses(r"a back end is a folder", run_trials, folder, str(folder / "none"))


def test_equal_folders_give_every_unordered_pair_once(folder, capsys):
    run_pairs(folder, "cosine")
    trials, scores = read_trials(folder / "pt"), as_dict(read_scores(folder / "ps"))
    assert len(trials) == len(scores) == 12 * 11 // 2
    assert all(e < t for e, t in scores)
    assert "written 66 pairs (18 target, 48 nontarget, unordered)" in capsys.readouterr().out
    for e, t, target in zip(trials.enrol, trials.trial, trials.target, strict=True):
        assert target == (UTT2SPK[e] == UTT2SPK[t])  # p1 is not p10
    vectors = read_segments(folder / "o").vectors
    right = CosineBackend().right(np.stack([vectors[u] for u in UTTS]).astype(np.float64))
    expected = right @ right.T
    for (e, t), score in scores.items():
        assert score == pytest.approx(expected[UTTS.index(e), UTTS.index(t)], abs=1e-8)
    for name in ("pt", "ps"):
        lines = (folder / name).read_text().splitlines()
        assert lines == sorted(lines)


def test_original_against_protected_gives_every_ordered_pair_but_itself(folder):
    run_pairs(folder, str(folder / "plda"), "o", "p")
    trials, scores = read_trials(folder / "pt"), as_dict(read_scores(folder / "ps"))
    assert len(trials) == len(scores) == 12 * 11
    assert all(e != t for e, t in scores)
    # the same figures as the trial program gives for single utterances
    sides = {"enrol": "o/xvector.scp", "trial": "p", "trials": "pt", "out": "again"}
    run_trials(folder, str(folder / "plda"), **sides)
    again = as_dict(read_scores(folder / "again"))
    for pair, score in scores.items():
        assert again[pair] == pytest.approx(score, rel=1e-8, abs=1e-8)


def test_pairs_need_every_segment_and_say_what_they_leave_out(folder, caplog):
    with (folder / "utt2spk").open("a") as stream:
        stream.write("p9-00 p9\n")
    refuses(r"1 of 13 segment ids are not in .*\(p9-00\)", run_pairs, folder, "cosine")
    assert not (folder / "ps").exists()
    write_map(folder / "utt2spk", {u: s for u, s in UTT2SPK.items() if s != "p2"})
    run_pairs(folder, "cosine")
    assert "4 x-vectors are of utterances that utt2spk does not list" in caplog.text
    assert len(read_scores(folder / "ps")) == 8 * 7 // 2
    write_map(folder / "utt2spk", {"p1-00": "p1"})
    refuses("1 segment", run_pairs, folder, "cosine")


def test_a_zero_vector_leaves_nothing_half_written(folder):
    write_archive(folder / "zero" / "xvector", dict.fromkeys(UTTS, np.zeros(6)))
    refuses("x-vectors are zero", run_pairs, folder, "cosine", "zero", "zero")
    assert not list(folder.glob("p[st]*"))


def test_many_pairs_cross_the_blocks(folder):
    """More segments than one block of rows: counts and a few scores."""
    rng = np.random.default_rng(3)
    utts = [f"{i // 10:03d}-{i % 10}" for i in range(600)]
    vectors = {u: rng.standard_normal(6).astype(np.float32) for u in utts}
    write_archive(folder / "many" / "xvector", vectors)
    write_map(folder / "utt2spk", {u: u[:3] for u in utts})
    run_pairs(folder, "cosine", "many", "many")
    trials, scores = read_trials(folder / "pt"), as_dict(read_scores(folder / "ps"))
    assert len(scores) == 600 * 599 // 2
    assert int(trials.target.sum()) == 60 * 45
    for e, t in (("000-0", "059-9"), ("025-5", "025-6"), ("030-0", "031-0")):
        norms = np.linalg.norm(vectors[e]) * np.linalg.norm(vectors[t])
        assert scores[e, t] == pytest.approx(vectors[e] @ vectors[t] / norms, abs=1e-6)


def test_normalised_scores_are_those_of_the_definition() -> None:
    """AS-norm by a plain loop: both sides against the nearest of the cohort."""
    rng = np.random.default_rng(3)
    enrol, trial, cohort = (rng.standard_normal((n, 8)) for n in (4, 5, 9))
    counts = np.array([1.0, 2.0, 3.0, 1.0])
    x = rng.standard_normal((60, 8)) + np.repeat(2.0 * rng.standard_normal((12, 8)), 5, axis=0)
    speakers = {f"u{i}": f"s{i // 5}" for i in range(60)}
    vectors = {f"u{i}": row.astype(np.float32) for i, row in enumerate(x)}
    base = train_backend(vectors, speakers, 6)
    normalised = backends.NormalisedBackend(base, cohort, 5)
    found = normalised.left(enrol, counts) @ normalised.right(trial).T

    plain = base.left(enrol, counts) @ base.right(trial).T
    of_enrol = np.sort(base.left(enrol, counts) @ base.right(cohort).T, axis=1)[:, -5:]
    of_trial = np.sort(base.left(cohort, np.ones(9)) @ base.right(trial).T, axis=0)[-5:]
    for i, j in np.ndindex(4, 5):
        by_enrol = (plain[i, j] - of_enrol[i].mean()) / of_enrol[i].std()
        by_trial = (plain[i, j] - of_trial[:, j].mean()) / of_trial[:, j].std()
        assert found[i, j] == pytest.approx((by_enrol + by_trial) / 2, abs=1e-9)


def test_normalisation_needs_a_cohort(tmp_path) -> None:
    refuses("asnorm 5", load_normalised, "cosine", 5)
    assert isinstance(load_normalised("cosine", 0), CosineBackend)
