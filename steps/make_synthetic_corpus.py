#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Make a set of synthetic speakers with eSpeak NG: audio files, and their Kaldi data directory.

AUDIO gets <speaker>/<speaker>-<number>.wav (16 kHz, mono, 16 bit); DATA gets wav.scp, utt2spk,
spk2utt, spk2gender, text, utt2lang and utt2dur (seconds). Speakers are called synf001, synm001 and
so on; half of them are women. A speaker's files depend on the seed, the settings and the speaker's
id only, to the bit: not on --nj, nor on who else is made. Speakers that AUDIO already holds, made
with the same settings and the same code, are kept.
"""

from pathlib import Path
from typing import Annotated

from utils.cli import UserError
from utils.commands import program
from utils.options import Jobs, Seed


@program
def main(
    audio: Annotated[Path, "The folder of the audio files"],
    data: Annotated[Path, "The data directory that is written"],
    *,
    speakers: Annotated[int, "The number of speakers, an even one", "N"] = 40,
    first: Annotated[int, "The number of the first speaker of each gender", "N"] = 1,
    utterances: Annotated[int, "The number of utterances of each speaker", "N"] = 14,
    spread: Annotated[float, "The distance between voices of a gender, from 0 (none) to 2"] = 0.5,
    within: Annotated[
        float, "The distance between a speaker's utterances, as a share of --spread",
    ] = 0.6,
    channel: Annotated[
        float, "The quality of rooms and microphones, from good (0) to poor (1)",
    ] = 0.7,
    seed: Seed = 0, nj: Jobs = 1,
) -> None:  # fmt: skip
    for option, value, good, wanted in (
        ("speakers", speakers, speakers >= 2 and speakers % 2 == 0, "an even number from 2 on"),
        ("first", first, first >= 1, "from 1 on"),
        ("utterances", utterances, 1 <= utterances <= 999, "from 1 to 999"),
        ("spread", spread, 0.0 <= spread <= 2.0, "from 0 to 2"),
        ("within", within, 0.0 <= within <= 2.0, "from 0 to 2"),
        ("channel", channel, 0.0 <= channel <= 1.5, "from 0 to 1.5"),
    ):
        if not good:
            raise UserError(f"--{option} {value}: give {wanted}")
    from steps.synthetic.corpus import CorpusSettings, data_tables, make_corpus, speaker_ids
    from utils.datadir import write_data_dir

    # Tables of another corpus must not outlive its audio, should this run be killed.
    (data / "wav.scp").unlink(missing_ok=True)
    genders = speaker_ids(first, speakers)
    settings = CorpusSettings(seed, utterances, spread, within, channel)
    made, n_new = make_corpus(audio, settings, genders, nj)
    write_data_dir(data, data_tables(audio, made, genders))
    spoken = [item for items in made.values() for item in items]
    hours = sum(item.seconds for item in spoken) / 3600.0
    print(
        f"{data}: {len(genders)} speakers ({n_new} made now, "
        f"{len(genders) - n_new} there before), {len(spoken)} utterances, {hours:.2f} h"
    )
