#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Compute how usable protected speech still is, and write the figures as JSON.

DATA is a data directory with utt2spk; the tables hold the same utterances. OUT is a file, or - for
standard output. Values are fractions; an undefined one is null. The cards in docs/metrics explain
every key.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from local.options import Figures, Resamples, write_figures
from steps.asr.language import NORMALISERS
from utils.cli import UserError
from utils.commands import commands
from utils.datachecks import EMOTIONS, NOTES
from utils.options import DataFolder, Utt2spk
from utils.tables import read_map

AGAIN = "A further set, counted together with the first; may be given again"


def _cut(data: Path, texts: Sequence[Path], n_utts: int) -> dict[str, object]:
    """Counts of hypotheses that a recogniser cut; none where no recogniser noted any."""
    heard = [text.parent for text in texts if text.with_name("recogniser.json").exists()]
    notes = [folder / NOTES for folder in heard if (folder / NOTES).exists()]
    cut = [utt for path in notes for utt in read_map(path, rest_of_line=True)]
    if not cut:
        return {}
    print(f"{data}: hypotheses cut: {', '.join(sorted(cut))}", file=sys.stderr)
    return {"hypotheses_cut": len(cut) / n_utts, "n_hypotheses_cut": len(cut)}


def _words(
    data: DataFolder,
    text: Annotated[Path, "The table of recognised words"],
    out: Figures, *,
    also: Annotated[Sequence[tuple[Path, Path]], AGAIN, "DATA TEXT"] = (),
    spelling: Annotated[
        str, "The spelling in which words are compared; english: as Whisper's normaliser spells "
        "it; english_digits: the same, each digit a word; plain, for any language: upper case "
        "and no punctuation; vpc2024, vpc2026: as these challenges compare them", (*NORMALISERS,),
    ] = "english",
    resamples: Resamples,
) -> None:  # fmt: skip
    """The word error rate; Kaldi's %WER line is printed.

    DATA needs text (what was said). TEXT is <utterance> <words>, such as steps/decode.py or
    anybody's recogniser writes; an utterance alone means that nothing was recognised. Both are
    normalised first (docs/metrics/wer.md). OUT gets wer and its parts, cer and counts. Where
    a recogniser left notes.txt beside TEXT, hypotheses_cut is the share of utterances whose
    hypothesis came to no end and was cut, and n_hypotheses_cut their number.
    """
    from local.metrics.utility import error_figures, kaldi_line
    from local.protocols.utterances import read_recognised

    named = [(data, text), *also]
    said = read_recognised(named, "text", "decode them again", rest_of_line=True)
    figures = error_figures(*said, normaliser=spelling, **resamples.words)
    figures |= _cut(data, [heard for _, heard in named], len(said[0]))
    counts = {name: n for name, n in figures.items() if isinstance(n, int)}
    print(kaldi_line(counts), file=sys.stderr if out == "-" else sys.stdout)
    write_figures(out, figures)


def _emotions(
    data: DataFolder,
    emotions: Annotated[Path, "The table of recognised emotions"],
    out: Figures, *,
    also: Annotated[Sequence[tuple[Path, Path]], AGAIN, "DATA EMOTIONS"] = (),
    emotion2vec: Annotated[
        bool, "Whether EMOTIONS are emotion2vec's nine, which count as four as in VoicePrivacy 2026"
    ] = False,
    resamples: Resamples,
) -> None:  # fmt: skip
    """The unweighted average recall of emotions.

    DATA needs utt2emotion (what was felt, or acted; of the challenges: utt2emo). EMOTIONS is
    <utterance> <emotion>, such as steps/recognise_emotion.py or anybody's recogniser writes; one
    that DATA does not have counts as wrong. OUT gets uar, recall_<emotion>, chance_uar
    (of a guesser) and the confusions; with the folds of a cross-validation, in spk2fold of DATA,
    also uar_vpc24 and recall_vpc24_<emotion>.
    """
    from local.metrics.utility import recall_figures
    from local.protocols.utterances import four_emotions, read_folds, read_recognised

    named = [(data, emotions), *also]
    truth, heard, utt2spk = read_recognised(named, "utt2emotion", "recognise them again")
    folds = read_folds([of for of, _ in named], utt2spk)
    if folds is not None and (missing := truth.keys() - folds.keys()):
        raise UserError(f"{data}: has no fold of utterance {min(missing)}")
    heard = four_emotions(heard) if emotion2vec else heard
    truth, heard = (  # a hub's names and those of utt2emo are in full already
        {utt: EMOTIONS.get(emotion.lower(), emotion) for utt, emotion in of.items()}
        for of in (truth, heard)
    )
    write_figures(out, recall_figures(truth, heard, utt2spk, folds, **resamples.words))


def _quality(
    data: DataFolder,
    quality: Annotated[Path, "The table of estimate_quality.py"],
    out: Figures, *,
    also: Annotated[Sequence[tuple[Path, Path]], AGAIN, "DATA QUALITY"] = (),
    original: Annotated[
        Sequence[Path], "The scores of the original speech; may be given again, for the original "
        "of a further set", "QUALITY",
    ] = (),
    resamples: Resamples,
) -> None:  # fmt: skip
    """Estimated mean opinion scores, and how far protection lowers them.

    QUALITY is the table of steps/estimate_quality.py, of some or all utterances of DATA. OUT gets
    mos (1 to 5) and, with --original, mos_original and mos_drop of the utterances that have both
    scores; `n_undefined` counts those without, by reason.
    """
    from local.metrics.utility import quality_figures, read_quality

    scores: dict[str, float | str] = {}
    utt2spk: dict[str, str] = {}
    for folder, path in [(data, quality), *also]:
        found, speakers = read_quality(path), read_map(folder / "utt2spk")
        if strange := found.keys() - speakers.keys():
            raise UserError(f"{path}: {min(strange)} is not in {folder}/utt2spk; estimate it again")
        if twice := found.keys() & scores.keys():
            raise UserError(f"{path}: {min(twice)} is also in another set; name each set once")
        scores |= found
        utt2spk |= speakers
    before = {utt: score for path in original for utt, score in read_quality(path).items()}
    if original and (missing := [utt for utt in scores if utt not in before]):
        raise UserError(f"{original[0]}: has no {missing[0]}; estimate it again")
    write_figures(
        out, quality_figures(scores, utt2spk, before if original else None, **resamples.words)
    )


def _prosody(
    prosody: Annotated[Path, "The table of compare_prosody.py"],
    out: Figures, *, utt2spk: Utt2spk, resamples: Resamples,
) -> None:  # fmt: skip
    """Mean changes, over utterances, of pitch, length and level.

    OUT gets f0_correlation (of log F0, -1 to 1), voicing_agreement, duration_change (signed),
    duration_drift (its size), clipping and clipping_original (fractions), level_change (dB); by
    speaker f0_correlation. `n_undefined` counts the utterances for which a figure is not defined.
    """
    from local.metrics.utility import prosody_figures, read_prosody

    table, speakers = read_prosody(prosody), read_map(utt2spk)
    if missing := table.keys() - speakers.keys():
        raise UserError(f"{utt2spk}: has no utterance {min(missing)}, which {prosody} lists")
    write_figures(out, prosody_figures(table, speakers, **resamples.words))


main = commands(_words, _emotions, _quality, _prosody)
