#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Protect the speech of a data directory with an anonymiser.

CONF is a YAML file such as conf/systems/b2.yaml (docs/anonymisers.md). DATA needs wav.scp and
utt2spk (audio of another rate is resampled to 16 kHz); it may be a part of a set, data/x/split8/3.
WAV_DIR gets <utterance>.wav, 16 kHz, mono, 16 bit, as long as the original, at the level that CONF
says. OUT becomes a data directory with the same utterance ids, the other tables of DATA, and

  pseudo.tsv   what was drawn for each utterance: its key, what the system says of it (for mcadams,
               alpha), and the seconds that it took
  conf.json    all settings, and is_random: whether another --draw gives other speech
  skipped.txt  <utterance> <reason>, only where some were skipped
  notes.txt    requests that the system could not meet, if any: <id> <note>

Some systems need more than the speech, and say which option is lacking. An extractor of
content computes on --device, all else on the processor.

Equal keys get equal pseudo-speakers. Draws depend on the seed, the draw and the key only: not on
order, number of jobs or machine.
"""

from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from steps import options
from utils.cli import UserError, progress
from utils.commands import program
from utils.options import AllowLoss, DataFolder, NotSpeakersOf, OutFolder, Seed


class Given(NamedTuple):
    """Resources that a system may ask for, by the names of `Resources`."""

    pool: Annotated[Path | None, "The folder of the voices (make_voice_pool.py)", "DIR"] = None
    xvectors: options.SpeakerXvectors = ()
    backend: options.GeneratorBackend = None
    generator: options.Generator = None
    f0: Annotated[
        Path | None, "The folder of the speakers' F0 statistics (compute_f0_stats.py)", "DIR",
    ] = None  # fmt: skip
    synthesiser: Annotated[
        Path | None, "The folder of a trained synthesiser (train_synthesiser.py)", "DIR",
    ] = None  # fmt: skip
    external: Annotated[
        Path | None, "The data directory of speech that another program protected", "DIR",
    ] = None  # fmt: skip
    model: Annotated[
        Path | None, "The folder of a system that was handed on (export_system.py)", "DIR",
    ] = None  # fmt: skip
    device: options.Device = "cpu"


@program
def main(
    conf: options.Settings, data_dir: DataFolder, out: OutFolder,
    wav_dir: Annotated[str, "The folder of the audio that is written"],
    *, dataset: options.Dataset = None, seed: Seed = 0, draw: options.Draw = 0,
    level: Annotated[
        Literal["utt", "spk", "perm", "const"] | None,
        "The level of the pseudo-speakers, instead of what CONF says: an attacker who trains on "
        "protected speech wants every utterance its own (utt)",
    ] = None,
    given: Given, not_speakers_of: NotSpeakersOf = (), allow_loss: AllowLoss = 0,
) -> None:  # fmt: skip
    from steps.anonymisers.registry import load_anonymiser, protect_audio, write_protected
    from steps.sources import Resources, make_keys, read_sources, whole_set
    from utils.datadir import TRAINING_SPEAKERS, check_unseen, load_data_dir, read_training_speakers
    from utils.seeds import Draws

    resources, model = Resources(**given._asdict()), given.model
    if model is not None:
        learnt_from = read_training_speakers(model)
        if learnt_from is None and not_speakers_of:
            print(f"{model}: no {TRAINING_SPEAKERS}: whom it learnt from is not known")
        check_unseen(learnt_from or [], model, not_speakers_of)
    anonymiser = load_anonymiser(conf, Draws(seed, draw), resources, level=level)
    data = load_data_dir(data_dir)
    name = whole_set(data_dir).name if dataset is None else dataset
    if [name] != name.split():
        raise UserError(f"--dataset {name!r}: a name without blanks is needed")
    keys = make_keys(anonymiser.level, data.utt2spk, name)
    speakers = read_sources(data, resources)
    told = data.tables.get("utt2lang", {})
    sources = {
        utt: speakers[spk]._replace(language=told.get(utt)) for utt, spk in data.utt2spk.items()
    }

    (out / "wav.scp").unlink(missing_ok=True)  # until the audio is whole again
    result = protect_audio(data.wav, keys, sources, anonymiser, wav_dir, progress("anonymise"))
    for note in anonymiser.notes:
        print(f"{conf}: {note}")
    print(f"{data_dir}: {result.summary()}")
    result.finish(out, len(data.wav), allow_loss)
    settings = {
        "system": anonymiser.settings(),
        "is_random": anonymiser.is_random,
        "key_level": anonymiser.level,
        "dataset": name,
        "seed": seed,
        "draw": draw,
        "sample_rate": 16000,
    }
    write_protected(out, data, result, settings, anonymiser.notes)
