#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Train the back end: global mean, LDA, two-covariance PLDA (Kaldi's chain and file formats).

XVECTORS is a folder of steps/extract_xvectors.py (also with --chunk-seconds), DATA the data
directory of the training speakers. OUT gets mean.vec, transform.mat, plda, spklist (whom it learnt
from) and cohort.{ark,scp} (the mean x-vector of each speaker, for score normalisation). LDA has at
most as many dimensions as the data can bear, min(--lda-dim, S - 1, N - S) for N x-vectors of S
speakers. With --lda-dim 0 OUT gets cohort and spklist alone, and is the cosine with something to
normalise by. --gaussian is a PLDA that scales nothing to length, and OUT also gets `unscaled`.
With --idf XVECTORS are counts of steps/extract_channel.py (words, sounds), and OUT gets idf.vec:
ln((1 + n) / (1 + m)) + 1 for a part that occurs in m of n utterances.
"""

from typing import Annotated

from steps.options import LdaDim, PcaDim, Xvectors
from utils.cli import refusing
from utils.commands import program
from utils.options import AllowLoss, DataFolder, NotSpeakersOf, OutFolder


@program
def main(
    xvectors: Xvectors, data_dir: DataFolder, out: OutFolder, *,
    lda_dim: LdaDim = 100, pca_dim: PcaDim = 0,
    gaussian: Annotated[bool, "Keep the lengths of vectors, for channels with few values"] = False,
    idf: Annotated[bool, "Learn how much each count tells (inverse document frequencies)"] = False,
    allow_loss: AllowLoss = 0, not_speakers_of: NotSpeakersOf = (),
) -> None:  # fmt: skip
    import numpy as np

    from steps.speaker.backends import IDF, PARTS, learn_idf, train_backend, write_backend
    from steps.speaker.vectors import average_by_speaker, read_training
    from utils.archives import write_archive, write_object
    from utils.datadir import write_training_speakers

    _, vectors, utt2spk = read_training(xvectors, data_dir, allow_loss, not_speakers_of)
    for part in (IDF, *PARTS, "cohort.scp"):  # of another kind, which would be read in its place
        (out / part).unlink(missing_ok=True)
    if idf:
        write_object(out / IDF, learn_idf(np.stack(list(vectors.values()))))
        print(f"read counts of {len(vectors)} utterances / written {out}/{IDF} / skipped 0")
        return
    cohort, counts = average_by_speaker(vectors.items(), utt2spk)
    backend, made = None, "cohort.scp"
    if lda_dim:
        why = f"{xvectors}: {{}}; extract them again"
        with refusing(why, ArithmeticError, np.linalg.LinAlgError):
            backend = train_backend(vectors, utt2spk, lda_dim, scaled=not gaussian, pca_dim=pca_dim)
    write_training_speakers(out, counts)
    if backend is not None:
        write_backend(out, backend)
        made = f"plda of {len(backend.plda.psi)} dimensions"
    write_archive(out / "cohort", cohort)
    read = f"read {len(vectors)} x-vectors of {len(counts)} speakers"
    print(f"{read} / written {out}/{made} / skipped 0")
