"""LDA, PLDA and their files, against independent derivations, Kaldi's layout and SpeechBrain."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from steps import average_xvectors, train_backend
from steps.speaker import vectors as v
from steps.speaker.backends import CosineBackend, load_backend, load_normalised, write_backend
from steps.speaker.backends import train_backend as train
from steps.speaker.training import equal_error_rate
from steps.speaker.vectors import Plda, read_xvectors, train_plda, write_plda
from tests.refusals import accepts, refuses, refuses_words
from utils.archives import read_counts, read_vectors, write_archive
from utils.cli import LossError
from utils.tables import read_map, write_map


def draw(n_speakers, n_each, dim, seed=0, within=1.0):
    """Vectors of the two-covariance model with full covariances, and their classes."""
    rng = np.random.default_rng(seed)
    mix_between, mix_within = 3 * np.eye(dim) + rng.standard_normal((2, dim, dim))
    y = np.repeat(rng.standard_normal((n_speakers, dim)) @ mix_between, n_each, axis=0)
    e = within * rng.standard_normal((n_speakers * n_each, dim)) @ mix_within
    classes = np.repeat(np.arange(n_speakers), n_each)
    return y + e + 3.0, classes, mix_between.T @ mix_between, within**2 * mix_within.T @ mix_within


def covariances(plda: Plda):
    """(between, within) in the space of the vectors."""
    a = np.linalg.inv(plda.transform)
    return a @ np.diag(plda.psi) @ a.T, a @ a.T


@pytest.mark.parametrize("n", [1, 3])
def test_plda_score_is_the_likelihood_ratio_of_joint_gaussians(n):
    """log p(u, w | same) - log p(u) p(w), u the mean of n vectors."""
    rng = np.random.default_rng(1)
    psi, u, w = rng.uniform(0.1, 5, 4), rng.standard_normal((3, 4)), rng.standard_normal((2, 4))
    got = v.enrolment_terms(psi, u, np.full(3, float(n))) @ v.trial_terms(psi, w).T
    own_u, own_w, shared = np.diag(psi + 1 / n), np.diag(psi + 1), np.diag(psi)
    joint = np.block([[own_u, shared], [shared, own_w]])
    logpdf, zero = multivariate_normal.logpdf, np.zeros(4)
    for i, j in np.ndindex(3, 2):
        same = logpdf(np.r_[u[i], w[j]], np.zeros(8), joint)
        apart = logpdf(u[i], zero, own_u) + logpdf(w[j], zero, own_w)
        assert got[i, j] == pytest.approx(same - apart, abs=1e-10)


def test_plda_length_normalisation_is_kaldis():
    """Sum of u^2 / (psi + 1/n) equals d, also for a mean of several vectors."""
    vectors, classes, _, _ = draw(20, 5, 6)
    plda = train_plda(vectors, classes)
    counts = np.arange(1.0, len(vectors) + 1)
    u = plda.project(vectors, counts)
    np.testing.assert_allclose(np.sum(u**2 / (plda.psi + 1 / counts[:, None]), axis=1), 6.0)


def test_plda_training_reaches_the_closed_form_of_balanced_data():
    """Equal counts n: within = scatter / (N - S), between = cov(means) - within / n."""
    vectors, classes, _, _ = draw(60, 8, 5, within=0.7)
    means, _, scatter = v.class_statistics(vectors, classes)
    within = scatter / (len(vectors) - 60)
    spread = np.cov(means.T, bias=True) - within / 8
    between, got_within = covariances(train_plda(vectors, classes, n_iterations=3000))
    np.testing.assert_allclose(got_within, within, rtol=0, atol=1e-4 * within.max())
    np.testing.assert_allclose(between, spread, rtol=0, atol=1e-3 * spread.max())


def test_plda_training_recovers_the_model_from_unequal_counts():
    vectors, classes, between, within = draw(3000, 6, 4, within=0.5)
    keep = np.random.default_rng(0).random(len(vectors)) < 0.5
    _, classes = np.unique(classes[keep], return_inverse=True)
    got_between, got_within = covariances(train_plda(vectors[keep], classes))
    assert np.abs(got_between - between).max() < 0.1 * between.max()
    assert np.abs(got_within - within).max() < 0.05 * within.max()


def test_lda_whitens_within_and_orders_the_spread():
    vectors, classes, _, _ = draw(30, 10, 8)
    centred = vectors - vectors.mean(axis=0)
    projected = centred @ v.train_lda(centred, classes, 3).T
    means, counts, scatter = v.class_statistics(projected, classes)
    np.testing.assert_allclose(scatter / len(vectors), np.eye(3), atol=1e-9)
    spread = (means * counts[:, None]).T @ means / len(vectors)
    np.testing.assert_allclose(spread, np.diag(np.diag(spread)), atol=1e-9)
    assert (np.diff(np.diag(spread)) < 0).all()


def test_lda_dimension_is_clamped_with_a_warning(caplog):
    assert v.clamp_dimension(100, 192, 40, 400) == 39
    assert v.clamp_dimension(100, 192, 40, 50) == 10
    assert "39 dimensions instead of 100" in caplog.text
    caplog.clear()
    assert v.clamp_dimension(100, 192, 400, 4000) == 100
    assert not caplog.text


def kaldi_read_plda(path: Path):
    """An independent reader of Kaldi's binary PLDA object, written from its documentation."""
    data = path.read_bytes()
    pattern = rb"\x00B<Plda> DV \x04(.{4})(.*)DM \x04(.{4})\x04(.{4})(.*)DV \x04(.{4})(.*)</Plda> "
    match = re.fullmatch(pattern, data, re.S)
    assert match
    sizes = [struct.unpack("<i", match[i])[0] for i in (1, 3, 4, 6)]
    assert len(set(sizes)) == 1
    d = sizes[0]
    mean, transform, psi = (np.frombuffer(match[i], "<f8") for i in (2, 5, 7))
    return mean, transform.reshape(d, d), psi


def kaldi_text_plda(plda: Plda) -> str:
    """A PLDA as `ivector-copy-plda --binary=false` writes it."""
    rows = "\n".join("  " + " ".join(f"{x:.17g}" for x in row) for row in plda.transform)
    vectors = [" ".join(f"{x:.17g}" for x in row) for row in (plda.mean, plda.psi)]
    return f"<Plda>  [ {vectors[0]} ]\n [\n{rows} ]\n [ {vectors[1]} ]\n</Plda> "


def test_plda_file_is_kaldis_in_both_forms(tmp_path):
    vectors, classes, _, _ = draw(20, 5, 6)
    plda = train_plda(vectors, classes)
    write_plda(tmp_path / "plda", plda)
    (tmp_path / "text").write_text(kaldi_text_plda(plda))
    single = (tmp_path / "plda").read_bytes()
    for array in (plda.mean, plda.transform, plda.psi):
        single = single.replace(array.tobytes(), array.astype("<f4").tobytes())
    (tmp_path / "single").write_bytes(single.replace(b"DV ", b"FV ").replace(b"DM ", b"FM "))
    binary, text = (v.read_plda(tmp_path / name) for name in ("plda", "text"))
    kaldis = Plda(*kaldi_read_plda(tmp_path / "plda"))
    for found in (binary, text, kaldis):
        for name in ("mean", "transform", "psi"):
            np.testing.assert_array_equal(getattr(found, name), getattr(plda, name))
    rough = v.read_plda(tmp_path / "single").transform
    np.testing.assert_array_equal(rough, plda.transform.astype(np.float32))


def table(vectors, classes):
    """x-vectors by id, and utt2spk."""
    keys = [f"s{c:03d}-{i:04d}" for i, c in enumerate(classes)]
    utt2spk = {key: key.split("-")[0] for key in keys}
    return dict(zip(keys, vectors.astype(np.float32), strict=True)), utt2spk


def test_a_backend_needs_several_vectors_of_a_speaker():
    vectors, classes, _, _ = draw(10, 1, 4)
    refuses("--chunk-seconds", train, *table(vectors, classes), 3)
    refuses(r"1 training speaker", train, *table(vectors, np.zeros(10, int)), 3)


def test_a_plda_of_two_speakers_told_nobody_apart(tmp_path):
    vectors, classes, _, _ = draw(2, 20, 6)
    names = [f"u{i:02d}" for i in range(40)]
    listed = dict(zip(names, vectors.astype(np.float32), strict=True))
    backend = train(listed, dict(zip(names, map(str, classes), strict=True)), 100)
    write_backend(tmp_path / "b", backend)
    scores = backend.left(vectors, np.ones(40)) @ backend.right(vectors).T
    assert len(np.unique(scores.round(6))) == 2  # same side or not
    refuses(r"b: is of one dimension .* use cosine", load_normalised, str(tmp_path / "b"), 0)
    load_backend(str(tmp_path / "b"))  # distances of a pool of two, who are both taken


def test_a_backend_folder_that_does_not_fit_is_named(tmp_path):
    refuses(r"mean\.vec: is missing", load_backend, str(tmp_path))
    write_backend(tmp_path, train(*table(*draw(30, 6, 12)[:2]), 8))
    write_plda(tmp_path / "plda", Plda(np.zeros(3), np.eye(3), np.ones(3)))
    refuses("do not fit", load_backend, str(tmp_path))


def test_pieces_of_utterances_that_were_not_enrolled_were_averaged(tmp_path, make_data_dir):
    data = make_data_dir(tmp_path / "data", {"s1": 3})
    (data / "enrolls").write_text("s1-000\ns1-002\n")
    pieces = {f"s1-00{i}-c000{n}": np.full(2, float(i)) for i in range(3) for n in range(2)}
    write_archive(tmp_path / "x" / "xvector", pieces)
    write_map(tmp_path / "x" / "utt2spk", dict.fromkeys(pieces, "s1"))
    average_xvectors.main([str(tmp_path / "x"), str(data), str(tmp_path / "x")])
    assert read_counts(tmp_path / "x" / "num_utts.ark") == {"s1": 4}


def test_missing_xvectors_are_losses(tmp_path, make_data_dir):
    data = make_data_dir(tmp_path / "data", {"s1": 3})
    write_archive(tmp_path / "x" / "xvector", {"s1-000": np.ones(2), "s1-001": np.ones(2)})
    command = [str(tmp_path / "x"), str(data), str(tmp_path / "x")]
    said = r"1 of 3 utterances have no x-vector \(s1-002\)"
    refuses(said, average_xvectors.main, command, kind=LossError)
    assert not (tmp_path / "x" / "spk_xvector.scp").exists()
    accepts(average_xvectors.main, "--allow-loss", "1", *command)
    write_archive(tmp_path / "y" / "xvector", {"s1-000": np.ones(2), "other": np.ones(2)})
    refuses_words("the first other", average_xvectors.main, tmp_path / "y", data, tmp_path / "y")
    refuses(r"xvector\.scp: is missing", read_xvectors, tmp_path)


@pytest.mark.corpora
def test_published_xvectors_separate_speakers(corpora, monkeypatch):
    """VoicePrivacy 2020 x-vectors (512-d): cosine, and PLDA trained on the other gender."""
    folder = corpora / "vpc2020_libri_test"
    monkeypatch.chdir(folder)  # the paths in its .scp files are relative to it
    sets = {g: read_xvectors(f"xvectors/libri_test_trials_{g}") for g in "fm"}
    utt2spk = {g: read_map(folder / "data" / f"libri_test_trials_{g}" / "utt2spk") for g in "fm"}
    eers = {}
    for own, other in (("f", "m"), ("m", "f")):
        x = np.stack(list(sets[own].values())).astype(np.float64)
        speakers = np.array([utt2spk[own][utt] for utt in sets[own]])
        rows, columns = np.triu_indices(len(x), k=1)
        same = speakers[rows] == speakers[columns]
        plda = train(sets[other], utt2spk[other], 200)
        for name, backend in (("cosine", CosineBackend()), ("plda", plda)):
            scores = (backend.left(x, np.ones(len(x))) @ backend.right(x).T)[rows, columns]
            eers[name, own] = 100 * equal_error_rate(scores, same)
    assert eers["cosine", "f"] < 2 and eers["cosine", "m"] < 4, eers
    # 20 speakers of the other gender: 19 dimensions of LDA, learnt on voices unlike these
    assert eers["plda", "f"] < 20 and eers["plda", "m"] < 20, eers
    means, counts = v.average_by_speaker(sets["f"].items(), utt2spk["f"])
    published = read_vectors("xvectors/libri_test_trials_f/spk_xvector.scp")
    for speaker, mean in means.items():
        np.testing.assert_allclose(mean, published[speaker], atol=1e-4)
    assert sum(counts.values()) == 734


def test_chunks_bring_their_own_speakers(tmp_path, make_data_dir):
    data = make_data_dir(tmp_path / "data", {"s1": 1, "s2": 1})
    chunks = {f"s{s}-000-c000{i}": np.array([s, i, 1.0]) for s in (1, 2) for i in range(3)}
    write_archive(tmp_path / "x" / "xvector", chunks)
    write_map(tmp_path / "x" / "utt2spk", {key: key[:2] for key in chunks})
    accepts(train_backend.main, tmp_path / "x", data, tmp_path / "b")
    # A part of the set in pieces went unnoticed, and an attacker learnt from it.
    more = make_data_dir(tmp_path / "more", {"s1": 2, "s2": 1})
    words = [str(tmp_path / "x"), str(more), str(tmp_path / "b")]
    refuses(r"1 of 3 utterances.*s1-001", train_backend.main, words, kind=LossError)
    accepts(train_backend.main, "--allow-loss", "1", *words)
    write_map(tmp_path / "x" / "utt2spk", dict.fromkeys(chunks, "s3"))
    refuses_words("s3 is not a speaker", train_backend.main, tmp_path / "x", data, tmp_path / "b")
