"""Settings that are refused: by reader, in tests/bad_settings.yaml."""

import re
from functools import partial
from pathlib import Path

import pytest
import yaml

from local.protocols.attackers import read_protocol
from steps.anonymisers.registry import describe_system
from steps.generators.idmap import MlpSettings, WganConfig
from steps.generators.idmap_diff import DiffSettings
from steps.speaker.config import EncoderConfig
from steps.synthesis.base import find_structure
from steps.synthesis.trained import NsfConfig
from steps.training.settings import read_config
from tests.refusals import refuses

READERS = {
    "system": describe_system,
    "encoder": partial(read_config, EncoderConfig),
    "synthesiser": lambda path: read_config(find_structure(path).settings, path),
    "nsf": partial(read_config, NsfConfig),
    "idmap_mlp": partial(read_config, MlpSettings),
    "idmap_diff": partial(read_config, DiffSettings),
    "wgan": partial(read_config, WganConfig),
    "protocol": read_protocol,
}
ROWS = [
    (reader, base, *row)
    for reader, bases in yaml.safe_load(
        Path(__file__).with_name("bad_settings.yaml").read_text()
    ).items()
    for base, rows in bases.items()
    for row in rows
]


@pytest.mark.parametrize(("reader", "base", "text", "said"), ROWS)
def test_bad_settings_are_one_line(tmp_path, reader, base, text, said):
    """That names the file and the setting."""
    path, given = tmp_path / "conf.yaml", re.findall(r"^(\w+):", text, re.M)
    kept = [line for line in base.splitlines() if line.partition(":")[0] not in given]
    path.write_text("\n".join([*kept, text]))
    assert refuses(re.escape(said), READERS[reader], path).startswith(str(path))
