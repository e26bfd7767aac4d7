#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Score training people from whom an attacker did not learn, to see whether people were learnt at
all.

XVECTORS and DATA are those of steps/train_backend.py, of a protected set. People with two
utterances or more are held out of training in turns and compared with each other, women with women
and men with men. OUT gets trials and scores of pairs of different utterances (of a person protected
at level spk or perm, also of different draws), and held_out.json: how many people, the share of
pieces of an utterance whose nearest among the other pieces of all its draws is of the same draw
(pseudo_voice_accuracy), and why nothing is defined, where nothing is.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from steps.options import LdaDim, PcaDim, Xvectors
from utils.cli import refusing
from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder, Seed


@program
def main(
    xvectors: Xvectors, data_dir: DataFolder, out: OutFolder, *,
    kind: Annotated[
        Literal["plda", "gaussian", "cosine"], "The back end, trained on the others"
    ] = "plda",
    lda_dim: LdaDim = 100, pca_dim: PcaDim = 0,
    own_encoder: Annotated[
        Path | None, "The folder of the encoder that the attacker trained on the set: only people "
        "of its validlist count", "MODEL",
    ] = None,
    head: Annotated[bool, "Also train a head on the others (steps/train_head.py)"] = False,
    seed: Seed = 0, allow_loss: AllowLoss = 0,
) -> None:  # fmt: skip
    import numpy as np

    from steps.speaker.backends import Backend, load_backend, train_backend
    from steps.speaker.held_out import HeadBackend, Vectors, attack_held_out, train_head
    from steps.speaker.vectors import read_training
    from utils.datadir import read_validation_speakers
    from utils.tables import is_there, read_json_object, write_json, write_map

    def learn(vectors: Vectors, utt2spk: Mapping[str, str]) -> Backend:
        if head:
            trained = train_head(vectors, utt2spk, seed)
            keys, made = list(vectors), trained.apply_to(np.stack(list(vectors.values())))
            return HeadBackend(trained, after(dict(zip(keys, made, strict=True)), utt2spk))
        return after(vectors, utt2spk)

    def after(vectors: Vectors, utt2spk: Mapping[str, str]) -> Backend:
        if kind == "cosine":
            return load_backend(kind)
        return train_backend(vectors, utt2spk, lda_dim, scaled=kind == "plda", pca_dim=pca_dim)

    data, vectors, utt2spk = read_training(xvectors, data_dir, allow_loss)
    unheard = None if own_encoder is None else read_validation_speakers(own_encoder)
    made = data_dir / "conf.json"
    conf = read_json_object(made, "protect the set again") if is_there(made) else {}
    lasting = conf.get("is_random") is True and conf.get("key_level") in ("spk", "perm")
    with refusing(f"{xvectors}: {{}}; extract them again", ArithmeticError, np.linalg.LinAlgError):
        result = attack_held_out(vectors, utt2spk, data, learn, unheard, lasting=lasting)
    pairs = [f"{enrol} {trial}" for enrol, trial, _ in result.trials]
    kinds = ["target" if target else "nontarget" for *_, target in result.trials]
    for name, values in (("trials", kinds), ("scores", [f"{s:.9g}" for s in result.scores])):
        (out / name).unlink(missing_ok=True)
        if pairs:
            write_map(out / name, dict(zip(pairs, values, strict=True)), blanks=True)
    write_json(out / "held_out.json", result.figures(), indent=1)
    told = result.why or f"{len(result.people)} people, {len(pairs)} pairs"
    print(f"read {len(vectors)} x-vectors / held out: {told}")
