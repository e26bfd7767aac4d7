#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""WavLM features of target voices, for kNN-VC with features: wavlm (docs/voice_conversion.md).

DATA needs wav.scp, utt2spk and spk2gender. OUT gets wavlm.{ark,scp}: matrices (T, 1024), a row
every 20 ms, of the speech without the silence before and after it; utt2spk, spk2utt, spk2gender;
weights.json, the SHA-256 of the weights; and, where some were lost, skipped.txt (<utterance>
<reason>). Then OUT is a pool: give it to steps/anonymise.py --pool, which takes no other weights
than these. An hour of speech takes 0.74 GB.

The weights are torchaudio's WAVLM_LARGE, 1.3 GB: the file of --wavlm, or that in torch.hub's
folder, or downloaded to it.
"""

from typing import Annotated

from steps.options import Device, measure
from utils.cli import UserError
from utils.commands import program
from utils.options import AllowLoss, DataFolder, NotSpeakersOf, OutFolder


@program
def main(
    data_dir: DataFolder, out: OutFolder, *,
    wavlm: Annotated[str | None, "The file of WavLM's weights (wavlm_large.pth)", "FILE"] = None,
    allow_loss: AllowLoss = 0, not_speakers_of: NotSpeakersOf = (), device: Device = "cpu",
) -> None:  # fmt: skip
    from utils.datadir import load_data_dir
    from utils.tables import is_there

    data = load_data_dir(data_dir, not_speakers_of=not_speakers_of)
    if data.spk2gender is None:
        raise UserError(f"{data_dir / 'spk2gender'}: is missing; targets are drawn by gender")
    if is_there(out / "world.scp"):
        raise UserError(f"{out}: holds a pool of WORLD frames; take another folder")
    from steps.synthesis.wavlm import WAVLM_URL, WavLMFeatures, fetch, finish_pool
    from steps.training.weights import check_device

    check_device(device)
    file = fetch("--wavlm", wavlm, WAVLM_URL, None)
    measure("wavlm", data_dir, out, allow_loss, WavLMFeatures.load(file.path, device))
    finish_pool(out, data.utt2spk, data.spk2gender, file)
    print(f"{file.path}: SHA-256 {file.sha256}")
