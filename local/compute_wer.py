#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Compute the word error rate, print Kaldi's %WER line, and write the figures as JSON.

DATA needs text (what was said) and utt2spk; TEXT is a table of the same utterances (<utterance>
<words>), such as steps/decode.py or anybody's recogniser writes; an utterance alone means that
nothing was recognised. Both are normalised first (docs/metrics/wer.md). OUT, a file or - for
standard output, gets wer, cer and their parts, ser and counts. Values are fractions of the words or
characters of DATA. Where a recogniser left notes.txt beside TEXT, hypotheses_cut is the share of
utterances whose hypothesis came to no end and was cut, and n_hypotheses_cut their number.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from local.options import AGAIN, Bootstrap, Figures, write_figures
from steps.asr.language import NORMALISERS
from utils.commands import program
from utils.datachecks import NOTES
from utils.options import DataFolder, Seed
from utils.tables import read_map


def _cut(data: Path, texts: Sequence[Path], n_utts: int) -> dict[str, object]:
    """Counts of hypotheses that a recogniser cut; none where no recogniser noted any."""
    heard = [text.parent for text in texts if text.with_name("recogniser.json").exists()]
    notes = [folder / NOTES for folder in heard if (folder / NOTES).exists()]
    cut = [utt for path in notes for utt in read_map(path, rest_of_line=True)]
    if not cut:
        return {}
    print(f"{data}: hypotheses cut: {', '.join(sorted(cut))}", file=sys.stderr)
    return {"hypotheses_cut": len(cut) / n_utts, "n_hypotheses_cut": len(cut)}


@program
def main(
    data: DataFolder,
    text: Annotated[Path, "The table of recognised words"],
    out: Figures, *,
    also: Annotated[Sequence[tuple[Path, Path]], AGAIN, "DATA TEXT"] = (),
    spelling: Annotated[
        str, "The spelling in which words are compared; english: as Whisper's normaliser spells "
        "it; english_digits: the same, each digit a word; plain, for any language: upper case "
        "and no punctuation; vpc2024, vpc2026: as these challenges compare them", (*NORMALISERS,),
    ] = "english",
    bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    from local.metrics.utility import error_figures, kaldi_lines
    from local.protocols.utterances import read_recognised

    named = [(data, text), *also]
    said = read_recognised(named, "text", "decode them again", rest_of_line=True)
    figures = error_figures(*said, normaliser=spelling, n_bootstrap=bootstrap, seed=seed)
    figures |= _cut(data, [heard for _, heard in named], len(said[0]))
    counts = {name: n for name, n in figures.items() if isinstance(n, int)}
    print("\n".join(kaldi_lines(counts)), file=sys.stderr if out == "-" else sys.stdout)
    write_figures(out, figures)
