#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Have a program of the user's own protect a data directory.

CONF (`anonymiser: command`) names the program. OUT becomes a folder with an audio file for each
utterance of DATA; steps/anonymise.py --external OUT takes it. A program that fails, or leaves
utterances out, leaves no OUT.
"""

from steps.options import Dataset, Draw, Settings
from utils.cli import UserError
from utils.commands import program
from utils.options import DataFolder, OutFolder, Seed


@program
def main(
    conf: Settings, data: DataFolder, out: OutFolder, *, dataset: Dataset = None, seed: Seed = 0,
    draw: Draw = 0,
) -> None:  # fmt: skip
    from steps.anonymisers.external import Command, protect_data, seed_of
    from utils.datadir import load_data_dir
    from utils.seeds import Draws
    from utils.settings import read_settings

    values = read_settings(conf)
    if values.get("anonymiser") != "command":
        raise UserError(f"{conf}: anonymiser: command is expected")
    settings = Command.parse(values, conf)
    utts = list(load_data_dir(data).wav)
    own_seed = seed_of(Draws(seed, draw), dataset or data.name)
    protect_data(settings, data, out, utts, own_seed)
    print(f"{data}: {len(utts)} utterances protected by {settings.command.split()[0]}")
