#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Train the back end: global mean, LDA, two-covariance PLDA (Kaldi's chain and file formats).

XVECTORS is a folder of steps/extract_xvectors.py (also with --chunk-seconds), DATA the data
directory of the training speakers. OUT gets mean.vec, transform.mat, plda, spklist (whom it learnt
from) and cohort.{ark,scp} (the mean x-vector of each speaker, for score normalisation). LDA has at
most as many dimensions as the data can bear, min(--lda-dim, S - 1, N - S) for N x-vectors of S
speakers. With --lda-dim 0 OUT gets cohort and spklist alone, and is the cosine with something to
normalise by.
"""

from steps.options import LdaDim, Xvectors
from utils.cli import refusing
from utils.commands import program
from utils.options import AllowLoss, DataFolder, NotSpeakersOf, OutFolder


@program
def main(
    xvectors: Xvectors, data_dir: DataFolder, out: OutFolder, *,
    lda_dim: LdaDim = 100, allow_loss: AllowLoss = 0, not_speakers_of: NotSpeakersOf = (),
) -> None:  # fmt: skip
    import numpy as np

    from steps.speaker.backends import train_backend, write_backend
    from steps.speaker.vectors import average_by_speaker, read_training
    from utils.archives import write_archive
    from utils.datadir import write_training_speakers

    _, vectors, utt2spk = read_training(xvectors, data_dir, allow_loss, not_speakers_of)
    cohort, counts = average_by_speaker(vectors.items(), utt2spk)
    read = f"read {len(vectors)} x-vectors of {len(counts)} speakers / written {out}"
    if lda_dim == 0:
        write_training_speakers(out, counts)
        write_archive(out / "cohort", cohort)
        print(f"{read}/cohort.scp / skipped 0")
        return
    with refusing(f"{xvectors}: {{}}; extract them again", ArithmeticError, np.linalg.LinAlgError):
        backend = train_backend(vectors, utt2spk, lda_dim)
    write_training_speakers(out, counts)
    write_backend(out, backend)
    write_archive(out / "cohort", cohort)
    print(f"{read}/plda of {len(backend.plda.psi)} dimensions / skipped 0")
