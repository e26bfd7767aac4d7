#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Make a data directory from a table of utterances, such as a corpus's prepare.sh writes.

TABLE is tab-separated with a header line naming its columns: `utt spk audio`, and `gender` (f, m
or other), `age` (whole years), `text`, `emotion` and `language` where the corpus has them. An empty
field says that the corpus lacks it. Each audio file's header is read. OUT gets wav.scp utt2spk
spk2utt utt2dur (seconds), and where known spk2gender, spk2age, text, utt2emotion and utt2lang.

An utterance is left out, with a line that says why, when its speaker does not begin its id, or it
has no audio, gender, transcript, emotion or language, its speaker has several genders or ages, or
its audio is that of another utterance, cannot be read, is empty or is not mono.
Nothing is written when more are left out than --allow-loss (exit status 3).
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

from utils.cli import LossError, UserError, progress
from utils.commands import program
from utils.options import AllowLoss, Jobs, OutFolder

SHOWN = 20  # faults printed; the rest is counted


@program
def main(
    table: Annotated[Path, "The table of utterances"],
    out: OutFolder, *, allow_loss: AllowLoss = 0, nj: Jobs = 1,
    genders_from: Annotated[str, "The place where genders come from, for messages", "NAME"] = "",
) -> None:  # fmt: skip
    from local.protocols import utterances as corpus
    from utils.datadir import write_data_dir

    rows = corpus.read_utterances(table)
    audio = corpus.probe_all(rows, nj, progress=progress("make_data_dir"))
    faults = list(corpus.find_faults(rows, audio, genders_from))
    for fault in faults[:SHOWN]:
        print(f"make_data_dir.py: {fault.message}", file=sys.stderr)
    if len(faults) > SHOWN:
        print(f"make_data_dir.py: and {len(faults) - SHOWN} more", file=sys.stderr)
    left_out = {fault.utt for fault in faults}
    good = [row for row in rows if row["utt"] not in left_out]
    kinds = Counter(fault.kind for fault in faults)
    why = ", ".join(f"{count} for the {kind}" for kind, count in kinds.most_common())
    counts = f"{len(rows)} read / {len(good)} written / {len(faults)} skipped"
    counts += f" ({why})" * bool(faults)
    if len(faults) > allow_loss:
        advice = "correct the corpus"  # nobody wants to lose all that there is
        advice += f", or allow the loss: --allow-loss {len(faults)}" * bool(good)
        raise LossError(
            f"{out}: not written: {len(faults)} of {len(rows)} utterances cannot be used "
            f"({why}); {advice}"
        )
    if not good:
        raise UserError(f"{out}: not written: no utterance can be used")
    write_data_dir(out, corpus.make_tables(good, audio))
    speakers = {row["spk"] for row in good}
    hours = sum(audio[row["utt"]].seconds for row in good) / 3600
    print(f"{out}: {counts}; {len(speakers)} speakers, {hours:.3f} h")
