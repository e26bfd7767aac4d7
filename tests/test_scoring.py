"""Trial and pair scores: joined by id, complete or refused, the same by every way."""

import numpy as np
import pytest

from steps import score_pairs, score_trials
from steps import train_backend as train_program
from steps.speaker import backends
from steps.speaker.backends import (
    CentredCosine,
    CosineBackend,
    load_normalised,
    read_segments,
    train_backend,
)
from tests.refusals import accepts, refuses, refuses_words
from tests.scored import trials_of
from utils.archives import write_archive
from utils.tables import write_map
from utils.trials import read_scores

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
    plda = train_backend(many, {u: u.split("-")[0] for u in many}, 4)
    backends.write_backend(tmp_path / "plda", plda)
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


def test_models_of_few_enrolled_utterances(folder):
    """Models of one enrolled utterance each, and of five, which nobody has: then of both, as with
    PLDA's counts of two; the same whatever the order of the files."""
    spk2utt = {spk: " ".join(u for u in UTTS if UTT2SPK[u] == spk) for spk in ("p1", "p10", "p2")}
    write_map(folder / "d/utt2spk", UTT2SPK)
    write_map(folder / "d/spk2utt", spk2utt)
    (folder / "d/enrolls").write_text("".join(f"{u}\n" for u in UTTS if u[-1] in "23"))
    vectors = read_segments(folder / "o").vectors
    means = {s: np.mean([vectors[f"{s}-0{n}"] for n in (2, 3)], axis=0) for s in spk2utt}
    write_archive(folder / "o/spk_xvector", means)
    write_map(folder / "o/num_utts.ark", dict.fromkeys(spk2utt, 2))
    paths = [str(folder / name) for name in ("o", "p", "trials", "scores")]
    few = ["--enrolled", "1", "--enrolled", "5"]
    options = ["--backend", str(folder / "plda"), *few]
    refuses_words("--enrolled needs --enrol-data", score_trials.main, *options, *paths)
    options += ["--enrol-data", str(folder / "d")]
    message = r"trials:1: recording p2-03 is compared with p2, a model .* \(6 of 36 .*--allow-self"
    refuses_words(message, score_trials.main, *options, *paths)
    accepts(score_trials.main, *options, "--allow-self", *paths)
    names = ("scores", "scores_enrolled_1", "scores_enrolled_5")
    whole, one, five = (as_dict(read_scores(folder / name)) for name in names)
    assert five == pytest.approx(whole, abs=1e-5)
    backend = load_normalised(str(folder / "plda"), 0)
    right = backend.right(np.stack([read_segments(folder / "p").vectors["p1-00"]]))
    single = backend.left(np.stack([vectors[f"p2-0{n}"] for n in (2, 3)]), np.ones(2)) @ right.T
    assert min(abs(single[:, 0] - one["p2", "p1-00"])) < 1e-5


def test_silent_failure_10_a_missing_key_is_an_error_that_names_it(folder):
    """Kaldi's ivector-plda-scoring warns, leaves the trial out and exits 0."""
    extra = "p3 p1-00 nontarget\np1 p9-00 nontarget\np1 p9-01 nontarget\n"
    with (folder / "trials").open("a") as stream:
        stream.write(extra)
    message = refuses("not all trials", run_trials, folder, "cosine_raw")
    assert f"1 of 4 enrolment ids are not in {folder / 'e'} (p3)" in message
    assert f"2 of 14 trial ids are not in {folder / 'o'} (p9-00 p9-01)" in message
    assert not (folder / "scores").exists()


def test_silent_failure_10_a_model_without_count_is_an_error(folder):
    write_map(folder / "e" / "num_utts.ark", {"p1": 1, "p2": 2})
    refuses(r"num_utts of .* \(p10\)", run_trials, folder, "cosine_raw")


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


def test_xvectors_of_another_encoder_are_refused(folder):
    write_archive(folder / "long" / "xvector", {u: np.ones(7) for u in UTTS})
    refuses(r"6 dimensions.*of 7", run_trials, folder, "cosine_raw", trial="long")
    refuses(r"6 dimensions.*of 7", run_pairs, folder, "cosine_raw", columns="long")
    said = "7 dimensions, the back end is for 6"
    refuses(said, run_pairs, folder, str(folder / "plda"), "long", "long")


def test_missing_inputs_say_what_makes_them(folder):
    said = r"spk_xvector\.scp: is missing.*average_xvectors\.py"
    refuses(said, run_trials, folder, "cosine_raw", enrol="o")
    refuses(r"a back end is a folder", run_trials, folder, str(folder / "none"))


def test_pairs_need_every_segment_and_say_what_they_leave_out(folder, caplog):
    with (folder / "utt2spk").open("a") as stream:
        stream.write("p9-00 p9\n")
    refuses(r"1 of 13 segment ids are not in .*\(p9-00\)", run_pairs, folder, "cosine_raw")
    assert not (folder / "ps").exists()
    write_map(folder / "utt2spk", {u: s for u, s in UTT2SPK.items() if s != "p2"})
    run_pairs(folder, "cosine_raw")
    assert "4 x-vectors are of utterances that utt2spk does not list" in caplog.text
    assert len(read_scores(folder / "ps")) == 8 * 7 // 2
    write_map(folder / "utt2spk", {"p1-00": "p1"})
    refuses("1 segment", run_pairs, folder, "cosine_raw")


def test_similarity_ended_the_recipe_for_an_utterance_without_phones(folder, caplog):
    """Its timing is zero: it has no direction, and is in no pair."""
    vectors = read_segments(folder / "p").vectors
    write_archive(folder / "few" / "xvector", {**vectors, "p1-00": np.zeros(6)})
    run_pairs(folder, "cosine_raw", "o", "few")
    pairs = as_dict(read_scores(folder / "ps"))
    assert len(pairs) == 11 * 10 and not any("p1-00" in pair for pair in pairs)
    assert f"{folder / 'few'}: 1 of 12 x-vectors are zero; left out" in caplog.text


def test_a_zero_vector_leaves_nothing_half_written(folder):
    write_archive(folder / "zero" / "xvector", dict.fromkeys(UTTS, np.zeros(6)))
    refuses("x-vectors are zero", run_pairs, folder, "cosine_raw", "zero", "zero")
    assert not list(folder.glob("p[st]*"))


@pytest.mark.parametrize("kind", ["plda", "cosine"])
def test_normalised_scores_are_those_of_the_definition(kind):
    """AS-norm by a plain loop: both sides against the nearest of the cohort, which the centred
    cosine centres by its own mean."""
    rng = np.random.default_rng(3)
    enrol, trial, cohort = (rng.standard_normal((n, 8)) for n in (4, 5, 9))
    counts = np.array([1.0, 2.0, 3.0, 1.0])
    x = rng.standard_normal((60, 8)) + np.repeat(2.0 * rng.standard_normal((12, 8)), 5, axis=0)
    speakers = {f"u{i}": f"s{i // 5}" for i in range(60)}
    vectors = {f"u{i}": row.astype(np.float32) for i, row in enumerate(x)}
    base = train_backend(vectors, speakers, 6) if kind == "plda" else CentredCosine()
    normalised = backends.NormalisedBackend(base, cohort, 5)
    found = normalised.left(enrol, counts) @ normalised.right(trial).T

    left, right, heard = base.left(enrol, counts), base.right(trial), base.right(cohort)
    if kind == "cosine":
        heard = scale(scale(cohort) - scale(cohort).mean(axis=0))
    of_enrol = np.sort(left @ heard.T, axis=1)[:, -5:]
    enrolled = heard if kind == "cosine" else base.left(cohort, np.ones(9))
    of_trial = np.sort(enrolled @ right.T, axis=0)[-5:]
    for i, j in np.ndindex(4, 5):
        by_enrol = ((left @ right.T)[i, j] - of_enrol[i].mean()) / of_enrol[i].std()
        by_trial = ((left @ right.T)[i, j] - of_trial[:, j].mean()) / of_trial[:, j].std()
        assert found[i, j] == pytest.approx((by_enrol + by_trial) / 2, abs=1e-9)


def test_normalisation_needs_a_cohort(tmp_path):
    refuses("asnorm 5", load_normalised, "cosine", 5)
    assert type(load_normalised("cosine_raw", 0)) is CosineBackend


# Two people at (3, 4) / 5 and (1, 0), and trials at (0, 2), (5, 0), (0, 1): by hand, see below.
BY_HAND = {"e": {"a": (3.0, 4.0), "b": (7.0, 0.0)}, "t": {"a1": (0, 2), "b1": (5, 0), "b2": (0, 1)}}


@pytest.fixture
def by_hand(tmp_path):
    write_archive(tmp_path / "e", {k: np.array(v, float) for k, v in BY_HAND["e"].items()})
    write_archive(tmp_path / "t", {k: np.array(v, float) for k, v in BY_HAND["t"].items()})
    return tmp_path


def centred_scores(folder, lines, *options):
    (folder / "trials").write_text("".join(f"{line}\n" for line in lines))
    paths = [str(folder / name) for name in ("e.scp", "t.scp", "trials", "scores")]
    accepts(score_trials.main, "--backend", *(options or ("cosine",)), *paths)
    return as_dict(read_scores(folder / "scores"))


EVERY = [f"{e} {t} {'target' if t[0] == e else 'nontarget'}" for e in "ab" for t in BY_HAND["t"]]


def test_cosine_is_centred_on_each_side(by_hand):
    """Enrolled (0.6, 0.8), (1, 0): less their mean (0.8, 0.4) they are (-0.2, 0.4), (0.2, -0.4).
    Trials (0, 1), (1, 0), (0, 1): less (1/3, 2/3) they are (-1/3, 1/3) twice and (2/3, -2/3), of
    directions (-1, 1) and (1, -1). The cosine of (-0.2, 0.4) and (-1, 1) is 0.6 / sqrt(0.2 x 2)."""
    scores = centred_scores(by_hand, EVERY)
    one = 0.6 / np.sqrt(0.4)
    wanted = {"a1": one, "b1": -one, "b2": one}
    for trial, score in wanted.items():
        assert scores["a", trial] == pytest.approx(score, abs=1e-6)
        assert scores["b", trial] == pytest.approx(-score, abs=1e-6)


def test_cosine_does_not_hear_what_a_whole_side_has_in_common(tmp_path):
    """An offset of one side, as one pseudo-voice adds, hides people from the raw cosine only."""
    rng = np.random.default_rng(7)
    people, offset = 0.1 * rng.standard_normal((6, 8)), 3 * rng.standard_normal(8)
    base, moved = np.full(8, 1.0), np.full(8, 1.0) + offset
    left = scale(base + people)
    raw, centred = CosineBackend(), CentredCosine()
    right = scale(moved + people)
    found = centred.left(left, np.ones(6)) @ centred.right(right).T
    assert (found.argmax(axis=1) == np.arange(6)).all()
    shifted = CentredCosine().right(left)  # lengths do not matter, nor does the order
    np.testing.assert_allclose(CentredCosine().right(7 * left[::-1])[::-1], shifted, atol=1e-12)
    assert (raw.left(left, np.ones(6)) @ raw.right(right).T).argmax(axis=1).tolist() != [*range(6)]


def scale(vectors):
    return backends.scale_to_length(vectors, 1.0)


def test_one_person_on_a_side_cannot_be_centred(by_hand):
    for lines, what in (
        (["a a1 target", "a b1 nontarget"], "1 person is enrolled"),
        (["a b1 nontarget", "b b1 target", "a b2 nontarget", "b b2 target"], "1 person is tried"),
    ):
        refuses(f"{what}.*use cosine_raw", centred_scores, by_hand, lines)
    # Who speaks a trial without a target is not known, but it is somebody else.
    assert len(centred_scores(by_hand, ["a b1 nontarget", "a a1 target", "b a1 nontarget"])) == 3


def test_equal_vectors_tell_nobody_apart(by_hand):
    write_archive(by_hand / "t", dict.fromkeys(("a1", "b1", "b2"), np.array([0.3, 0.1])))
    assert {*centred_scores(by_hand, EVERY).values()} == {0.0}


def test_zero_x_vectors_were_refused_without_a_name(by_hand):
    write_archive(by_hand / "t", {"a1": np.zeros(2), "b1": np.ones(2)})
    sides = (backends.read_segments(by_hand / f"{name}.scp") for name in "et")
    trials = trials_of([("a", "a1", True), ("b", "b1", True)])
    refuses("t.scp: 1 x-vectors are zero", backends.score_trials, CosineBackend(), *sides, trials)


def test_a_cohort_of_another_encoder_ended_in_a_traceback(by_hand):
    cohort = {name: np.array([1.0, n, n * n]) for n, name in enumerate("xyz")}
    write_archive(by_hand / "other/cohort", cohort)
    scorer = load_normalised(str(by_hand / "other"), 3)
    sides = (backends.read_segments(by_hand / f"{name}.scp") for name in "et")
    trials = trials_of([("a", "a1", True), ("b", "b1", True)])
    refuses("2 dimensions, the back end is for 3", backends.score_trials, scorer, *sides, trials)


def test_normalisation_ended_at_an_utterance_without_phones():
    """Its vector is zero, and so are its scores, as without a cohort; others are what they were."""
    rng = np.random.default_rng(6)
    cohort, enrol, trial = (rng.standard_normal((n, 3)) for n in (9, 4, 4))
    found = backends.NormalisedBackend(CentredCosine(), cohort, 5)
    some = found.left(enrol, np.ones(4)) @ found.right(trial).T
    enrol, trial = (np.vstack([side, np.zeros(3)]) for side in (enrol, trial))
    scores = found.left(enrol, np.ones(5)) @ found.right(trial).T
    assert scores[:4, :4] == pytest.approx(some) and not scores[4].any() and not scores[:, 4].any()


def test_a_folder_with_a_cohort_alone_is_the_cosine(by_hand):
    rng = np.random.default_rng(2)
    utts = {f"s{i // 2}-{i}": f"s{i // 2}" for i in range(16)}
    write_archive(by_hand / "x/xvector", {utt: rng.standard_normal(2) for utt in utts})
    write_map(by_hand / "d/utt2spk", utts)
    made = by_hand / "made"
    words = ["--lda-dim", "0", by_hand / "x", by_hand / "d", made]
    accepts(train_program.main, *words)
    assert sorted(path.name for path in made.iterdir()) == ["cohort.ark", "cohort.scp", "spklist"]
    refuses("mean.vec: is missing", backends.read_plda, made)  # a pool's distances need one
    assert centred_scores(by_hand, EVERY, str(made)) == centred_scores(by_hand, EVERY)
    normalised = centred_scores(by_hand, EVERY, str(made), "--asnorm", "4")
    assert normalised.keys() == centred_scores(by_hand, EVERY).keys()
    assert isinstance(load_normalised(str(made), 100), backends.NormalisedBackend)
    accepts(train_program.main, "--lda-dim", "2", *words[2:])
    assert isinstance(backends.load_backend(str(made)), backends.PldaBackend)
    accepts(train_program.main, *words)  # the PLDA that was there scored in its place
    assert isinstance(backends.load_backend(str(made)), backends.CentredCosine)
