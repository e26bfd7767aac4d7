#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Make the x-vectors of pseudo-speakers, without any speech.

CONF is the YAML file of a system with a `generator` (docs/generators.md), such as those with
`anonymiser: voice_conversion`; of the rest only `level` and `gender` count. DATA needs utt2spk, and
spk2gender where the gender counts. OUT gets

  xvector.{ark,scp}  what each utterance's speaker becomes; equal keys have equal vectors
  pseudo.tsv         the key of each utterance, the generator's columns (for idmap_*, the identity
                     index), and the seconds that the vector took
  conf.json          all settings, and requests that could not be met

Draws depend on the seed, the draw and the key only.
"""

from steps import options
from utils.commands import program
from utils.options import DataFolder, OutFolder, Seed
from utils.tables import write_json


@program
def main(
    conf: options.Settings, data_dir: DataFolder, out: OutFolder, *,
    dataset: options.Dataset = None, seed: Seed = 0, draw: options.Draw = 0,
    pool: options.Pool = None, pool_data: options.PoolData = None,
    xvectors: options.SpeakerXvectors = (), backend: options.GeneratorBackend = None,
    generator: options.Generator = None,
) -> None:  # fmt: skip
    from steps.anonymisers.registry import write_pseudo
    from steps.generators.sampling import generate_speakers, read_speaker_settings
    from steps.sources import Resources, make_keys, read_sources, whole_set
    from utils.archives import write_archive
    from utils.datadir import load_data_dir
    from utils.seeds import Draws
    from utils.settings import read_settings

    settings = read_speaker_settings(read_settings(conf), conf)
    data = load_data_dir(data_dir, need=("utt2spk",))
    resources = Resources(pool=pool, xvectors=tuple(xvectors), backend=backend, generator=generator)
    draws, sources = Draws(seed, draw), read_sources(data, resources)
    source = settings.load(conf, draws, resources, pool, pool_data)
    name = whole_set(data_dir).name if dataset is None else dataset
    keys = make_keys(settings.level, data.utt2spk, name)
    vectors, rows, n_made = generate_speakers(source, settings, keys, data.utt2spk, sources, draws)
    write_archive(out / "xvector", vectors)
    write_pseudo(out / "pseudo.tsv", rows)
    described: dict[str, object] = {"generator": source.settings(), "level": settings.level}
    described |= {"gender": settings.gender, "dataset": name, "seed": seed, "draw": draw}
    described["notes"] = source.notes
    write_json(out / "conf.json", described, indent=2, sort_keys=True)
    for note in source.notes:
        print(f"{conf}: {note}")
    print(f"made {n_made} pseudo-speakers for {len(vectors)} utterances / skipped 0")
