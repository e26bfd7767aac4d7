#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Average x-vectors by speaker.

XVECTORS is a folder of steps/extract_xvectors.py, DATA the data directory (utt2spk; where it has
`enrolls`, only the utterances listed there count). OUT gets spk_xvector.{ark,scp}, the plain mean
of the raw x-vectors, and num_utts.ark (text), how many went into each. Every utterance must have
an x-vector.
"""

from steps.options import Xvectors
from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder


@program
def main(
    xvectors: Xvectors, data_dir: DataFolder, out: OutFolder, *, allow_loss: AllowLoss = 0
) -> None:
    from steps.speaker import vectors as x
    from utils.archives import write_archive
    from utils.datadir import load_data_dir
    from utils.tables import write_map

    data = load_data_dir(data_dir, need=("utt2spk",))
    reader, utt2spk = x.open_xvectors(xvectors), x.speakers_of(xvectors, data)
    x.check_complete(reader, utt2spk, xvectors, allow_loss, data.utt2spk)
    vectors = reader.vectors()
    if data.enrolls is not None:
        enrolled = set(data.enrolls)
        vectors = (one for one in vectors if x.source_of(one[0], data.utt2spk) in enrolled)
    means, counts = x.average_by_speaker(vectors, utt2spk)
    write_map(out / "num_utts.ark", counts)
    write_archive(out / "spk_xvector", means)
    print(f"read {sum(counts.values())} x-vectors / written {len(means)} speakers / skipped 0")
