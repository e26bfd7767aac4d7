"""Systems as data: files, and the variants that differ from one in a few settings."""

import re
import shutil
from pathlib import Path

import pytest

from steps.anonymise import main as anonymise
from steps.anonymisers.registry import describe_system, load_anonymiser
from steps.standalone.job import load_system
from tests.refusals import refuses
from utils import stamps
from utils.digests import ABSENT, digest_file, digest_json
from utils.settings import VARIANTS, is_settings, list_settings, read_settings, settings_text

SYSTEMS = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/systems"
GOLDEN = Path(__file__).with_name("systems.sha256")


def test_every_system_has_the_settings_that_it_had_in_a_file_of_its_own():
    """GOLDEN has the digest of the settings of each, from before there were variants: they stay, or
    figures would change their meaning."""
    found = {f"{digest_json(read_settings(SYSTEMS / f'{name}.yaml'))}  {name}"
             for name in list_settings(SYSTEMS)}  # fmt: skip
    assert found >= {*GOLDEN.read_text().splitlines()}


def test_every_variant_says_what_it_is_for_and_is_no_file():
    for name, variant in read_settings(SYSTEMS / VARIANTS).items():
        assert isinstance(variant, dict) and variant["question"].endswith((".", "?")), name
        assert not (SYSTEMS / f"{name}.yaml").exists()
        describe_system(SYSTEMS / f"{name}.yaml")


@pytest.mark.parametrize(
    ("name", "level", "needs"),
    [
        ("b1_dense", "spk", ["pool", "xvectors", "backend", "f0"]),
        ("b1_nsf_bend", "spk", ["pool", "f0", "synthesiser:nsf_mini"]),
        ("const_01_f0", "const", ["pool", "f0"]),
        ("knnvc_utt", "utt", ["pool", "f0"]),
        ("knnvc_perm", "perm", ["pool", "f0"]),
        ("knnvc_content", "spk", ["pool:moonshine", "f0"]),
        ("voxlet_like", "const", ["model:bn"]),
        ("rasp_like", "spk", ["f0", "model:bn"]),
        ("shadow_like", "spk", ["pool", "xvectors", "backend", "f0", "synthesiser:bn_vq"]),
        ("phortress_like", "spk", ["pool"]),
    ],
)  # fmt: skip
def test_shipped_systems_say_what_they_need(name, level, needs):
    description = describe_system(SYSTEMS / f"{name}.yaml")
    assert (description.level, [*description.needs]) == (level, needs)


def test_every_system_without_needs_is_made_of_its_file_alone():
    paths = [SYSTEMS / f"{name}.yaml" for name in list_settings(SYSTEMS)]
    alone = [path for path in paths if not describe_system(path).needs]
    assert len(alone) > 4 and all(load_anonymiser(path).settings() for path in alone)


def test_the_examples_of_the_documentation_are_valid(tmp_path):
    pages = ((SYSTEMS.parents[3] / f"docs/{n}.md") for n in ("mcadams", "voice_conversion", "b1"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    examples = re.findall(r"```yaml\n(anonymiser: .*?)```", text, flags=re.DOTALL)
    assert len(examples) > 2
    for example in examples:
        (tmp_path / "x.yaml").write_text(example)
        describe_system(tmp_path / "x.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file and a variant of it."""
    shutil.copy(SYSTEMS / "b2.yaml", tmp_path)
    (tmp_path / VARIANTS).write_text("x: {base: b2, question: How much, alpha: 0.7}\n")
    return tmp_path


def test_a_variant_is_used_like_a_file(folder, make_data_dir, capsys):
    data, (x, b2) = make_data_dir(folder / "data"), (folder / f"{n}.yaml" for n in ("x", "b2"))
    assert list_settings(folder) == ["b2", "x"] and is_settings(x) and not is_settings(folder)
    assert not is_settings(folder / VARIANTS) and not is_settings(folder / "y.yaml")
    assert read_settings(x) == {"anonymiser": "mcadams", "alpha": 0.7}
    assert load_system(x, 0).digest == digest_file(x) != digest_file(b2)
    assert anonymise([str(x), str(data), str(folder / "out"), str(folder / "out/wav")]) == 0
    assert '"alpha": 0.7' in (folder / "out/conf.json").read_text()
    b2.with_name("own.yaml").write_bytes(settings_text(x))
    assert digest_file(folder / "own.yaml") == digest_file(x)


def test_a_step_knows_when_its_variant_changes(folder):
    """So does the settings' file that it stands for; other variants and questions do not count."""
    out, listed = folder / "out", folder / VARIANTS
    command = ["true", str(folder / "x.yaml")]
    stamps.Step([out], command).begin()
    out.mkdir()
    stamps.Step([out], command).finish()
    assert stamps.Step([out], command).why() is None
    listed.write_text("y: {}\nx: {base: b2, question: What, alpha: 0.7}\n")
    assert stamps.Step([out], command).why() is None
    (folder / "x.yaml").write_text("anonymiser: mcadams # a file of its own\nalpha: 0.7\n")
    assert stamps.Step([out], command).why() is None
    (folder / "x.yaml").unlink()
    listed.write_text(listed.read_text().replace("0.7", "0.6"))
    assert stamps.Step([out], command).why() == f"{folder}/x.yaml changed"
    listed.unlink()
    assert digest_file(folder / "x.yaml") == ABSENT


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        ("{base: b3, question: Q}", "x: base: 'b3' is unknown; known: b2"),
        ("{base: x, question: Q}", "x: base: 'x' is unknown; known: b2"),
        ("{question: Q, alpha: 0.7}", "x: base: None is unknown"),
        ("{base: [b2], question: Q}", "x: base: ['b2'] is unknown"),
        ("{base: b2, alpha: 0.7}", "x: question: say in words what this variant is for"),
        ("{base: b2, question: Q, alpa: 1}", "x: alpa: unknown setting; known: anonymiser, alpha"),
        ("{base: b2, question: Q, alpha: a}", "x: alpha: 'a'; a number is expected"),
        ("{base: b2, question: Q, anonymiser: c}", "x: anonymiser: 'c' is unknown"),
        ("{base: b2, question: Q, base: b2}", "base is given twice"),
        ("b2", "x: settings are expected, one `name: value` a line"),
        ("", "x: base: None is unknown"),
    ],
)  # fmt: skip
def test_a_bad_variant_is_one_line(folder, variant, message):
    (folder / VARIANTS).write_text(f"x: {variant}\n")
    refuses(rf"/variants.yaml.*{re.escape(message)}", describe_system, folder / "x.yaml")


def test_an_edit_of_a_models_card_ended_the_protection_of_a_folder(tmp_path):
    """Its digest says whether a folder goes on; a line in README.md had changed it."""
    folder = tmp_path / "bn"
    shutil.copytree(SYSTEMS.parents[3] / "models/bn", folder)
    before = load_system(folder, 0).digest
    (folder / "README.md").write_text("Another card")
    assert load_system(folder, 0).digest == before
    (folder / "limits.txt").write_text("Other limits")
    assert load_system(folder, 0).digest != before
