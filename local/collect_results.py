#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Gather in OUT all that the report shows, so that it is made from OUT alone.

metrics.csv     one figure a row; values are fractions (EER 0.05 is 5 %), gains dB, D_ECE bit; low
                and high bound the 95 % interval over speakers; settings is the digest of everything
                that made the figure (see the folder's .done)
per_speaker.csv figures of one speaker a row
figures.json    what the pictures need: matrices, zoo points, ECE profiles, histograms, rank curves
clips/          short clips of the worst-protected speakers (MP3), listed in clips.json
run.json        command, commit, versions, settings of the systems, how each figure was made, what
                each attack was (attacker.json beside its scores), and what is missing

Each FOLDER of --figures has metrics.json, labels.json and a stamp; one that lacks any, a system
without conf.json, a picture, clip or attack of which something is missing is left out and named in
the report. That is an error beyond --allow-loss.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from local.options import CorpusName, Labelled
from utils.cli import natural
from utils.commands import program
from utils.options import AllowLoss, OutFolder
from utils.tables import write_json


@program
def main(
    out: OutFolder, *, corpus_name: CorpusName, figures: Labelled = (),
    corpus_note: Annotated[str, "What a reader must know about the speech", "TEXT"] = "",
    attack: Annotated[
        Sequence[tuple[Path, Path, Path]],
        "An attack among the FOLDERs of --figures, with its trials and scores, for its curves; may "
        "be given again", "FOLDER TRIALS SCORES",
    ] = (),

    speech: Annotated[
        Sequence[tuple[str, str, str]],
        "The data directories of a system: settings, and the speech that clips are cut from",
        "SYSTEM DATA PROTECTED_DATA",
    ] = (),
    clips: Annotated[
        int, "The number of speakers with clips, of each system and split; 0: none", "N", natural
    ] = 10,
    trained_again: Annotated[
        Sequence[tuple[str, str]], "An evaluator, and that of which it is another training; may be "
        "given again", "EVALUATOR FIRST",
    ] = (),
    allow_loss: AllowLoss = 0,
) -> None:  # fmt: skip
    from pandas import DataFrame

    from local.report import gather as of
    from local.report.frame import METRICS, SPEAKERS, with_numbers, write_frame
    from local.report.results import Results

    folders, unlabelled = of.labelled(figures)
    nameless = {lost["what"] for lost in unlabelled}
    attack = [own for own in attack if str(own[0]) not in nameless]

    rows, speakers, no_figures = of.tabulate_all(folders, corpus_name)
    unused = {lost["what"] for lost in no_figures}
    used = [folder for folder in folders if str(folder) not in unused]
    rows += of.differences({folder: folders[folder] for folder in used}, corpus_name)
    pictures, no_pictures = of.gather(folders, used, attack)
    records, no_records = of.attacks(folders, attack)
    systems, no_settings = of.settings_of_systems(speech)
    missing = [*unlabelled, *no_figures, *no_pictures, *no_records, *no_settings]
    of.check_losses(missing, allow_loss)  # before anything is written
    people = with_numbers(DataFrame(speakers, columns=[*SPEAKERS], dtype=object))
    heard = of.load_speech(speech)
    cut, no_clips = of.cut_clips(Results(speakers=people), heard, clips, out)
    missing += no_clips
    of.check_losses(missing, allow_loss)
    run = {
        "corpus": corpus_name, "corpus_note": corpus_note, "origin": of.origin(),
        "systems": systems, "steps": of.steps(used), "attacks": records, "missing": missing,
        "trainings": dict(trained_again),
    }  # fmt: skip
    write_frame(out / "per_speaker.csv", SPEAKERS, speakers)
    for name, value in (("figures", pictures), ("clips", cut), ("run", run)):
        write_json(out / f"{name}.json", value, indent=None, ensure_ascii=False, allow_nan=False)
    write_frame(out / "metrics.csv", METRICS, rows)
    print(
        f"{len(rows)} figures of {len(used)} comparisons ({len(folders)} read, "
        f"{len(no_figures)} left out) and {len(cut)} pairs of clips written to {out}"
    )
