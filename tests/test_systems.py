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
from utils.cli import UserError
from utils.digests import ABSENT, digest_file, digest_json
from utils.settings import VARIANTS, is_settings, list_settings, read_settings, settings_text

SYSTEMS = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/systems"
GOLDEN = Path(__file__).with_name("systems.sha256")


def test_every_system_has_the_settings_that_it_had_in_a_file_of_its_own() -> None:
    """GOLDEN has the digest of the settings of each, from before there were variants. Another
    system gets a line; one that is there keeps its own, or figures would change their meaning."""
    found = [f"{digest_json(read_settings(SYSTEMS / f'{name}.yaml'))}  {name}"
             for name in list_settings(SYSTEMS)]  # fmt: skip
    assert found == GOLDEN.read_text().splitlines()


def test_every_variant_says_what_it_is_for_and_is_no_file() -> None:
    for name, variant in read_settings(SYSTEMS / VARIANTS).items():
        assert isinstance(variant, dict) and variant["question"].endswith((".", "?")), name
        assert not (SYSTEMS / f"{name}.yaml").exists()
        describe_system(SYSTEMS / f"{name}.yaml")


NEEDS = [
    ("b1", "spk", ("pool", "xvectors", "backend")),
    ("b1_mini", "spk", ("pool", "xvectors", "backend")),
    ("b1_f0", "spk", ("pool", "xvectors", "backend", "f0")),
    ("b1_utt", "utt", ("pool", "xvectors", "backend")),
    ("b1_near", "spk", ("pool", "xvectors", "backend")),
    ("b1_dense", "spk", ("pool", "xvectors", "backend", "f0")),
    ("b1_sparse", "spk", ("pool", "xvectors", "backend", "f0")),
    ("b1_cross", "spk", ("pool", "xvectors", "backend", "f0")),
    ("b1_nsf", "spk", ("pool", "xvectors", "backend", "synthesiser:nsf_mini")),
    ("b1_nsf_bend", "spk", ("pool", "f0", "synthesiser:nsf_mini")),
    ("const_01", "const", ("pool",)),
    ("const_01_f0", "const", ("pool", "f0")),
    ("knnvc", "spk", ("pool", "f0")),
    ("knnvc_utt", "utt", ("pool", "f0")),
    ("knnvc_perm", "perm", ("pool", "f0")),
    ("knnvc_const", "const", ("pool", "f0")),
    ("knnvc_p1", "perm", ("pool", "f0")),
    ("knnvc_p2", "perm", ("pool", "f0")),
    ("knnvc_mix", "perm", ("pool", "f0")),
    ("knnvc_wavlm", "spk", ("pool:wavlm",)),
    ("knnvc_content", "spk", ("pool:moonshine", "f0")),
    ("voxlet_like", "const", ("model:bn",)),
    ("rasp_like", "spk", ("f0", "model:bn")),
    ("shadow_like", "spk", ("pool", "xvectors", "backend", "f0", "synthesiser:bn_vq")),
    ("phortress_like", "spk", ("pool",)),
]


@pytest.mark.parametrize(("name", "level", "needs"), NEEDS)
def test_shipped_systems_say_what_they_need(name: str, level: str, needs: tuple[str, ...]) -> None:
    description = describe_system(SYSTEMS / f"{name}.yaml")
    assert (description.level, description.needs) == (level, needs)


def test_every_system_without_needs_is_made_of_its_file_alone() -> None:
    paths = [SYSTEMS / f"{name}.yaml" for name in list_settings(SYSTEMS)]
    alone = [path for path in paths if not describe_system(path).needs]
    assert len(alone) > 4 and all(load_anonymiser(path).settings() for path in alone)


def test_the_examples_of_the_documentation_are_valid(tmp_path: Path) -> None:
    pages = ((SYSTEMS.parents[3] / f"docs/{n}.md") for n in ("mcadams", "voice_conversion", "b1"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    examples = re.findall(r"```yaml\n(anonymiser: .*?)```", text, flags=re.DOTALL)
    assert len(examples) > 2
    for example in examples:
        (tmp_path / "x.yaml").write_text(example)
        describe_system(tmp_path / "x.yaml")


FARTHEST = "{name: farthest, distance: cosine, candidates: 3, averaged: 2}"
CONVERSION = f"anonymiser: voice_conversion\ngenerator: {FARTHEST}\n"
BOTTLENECK = "anonymiser: voice_conversion\ngenerator: {name: random}\nsynthesiser: bn_mini\n"
RANDOM = "anonymiser: mcadams\nalpha_range: [0.7, 0.9]\n"
BAD = {
    "": [
        ("alpha: 0.8", "anonymiser: None is unknown; known: mcadams"),
        ("anonymiser: macadams", "anonymiser: 'macadams' is unknown; known: mcadams"),
        ("- mcadams", "settings are expected, one `name: value` a line"),
        ("", "settings are expected"),
        ("anonymiser: mcadams\nalfa: 0.8", "alfa: unknown setting; known: anonymiser, alpha, "),
        ("anonymiser: mcadams\nalpha: 0.8\nalpha: 0.9", ":3: alpha is given twice"),
        ("anonymiser: mcadams\nalpha: [0.8", ":2: "),
        ("anonymiser: mcadams\nalpha: high", "alpha: 'high'; a number is expected"),
        ("anonymiser: mcadams\nalpha: true", "alpha: True; a number is expected"),
        ("anonymiser: mcadams\nalpha: .nan", "alpha: nan; a finite number is expected"),
        ("anonymiser: mcadams\nalpha: 0", "alpha: 0; above 0 is expected"),
        ("anonymiser: mcadams\nalpha: -0.8", "alpha: -0.8; above 0 is expected"),
        ("anonymiser: mcadams\nalpha_range: [0.9, 0.7]", "[0.9, 0.7]; the lower end first"),
        ("anonymiser: mcadams\nalpha_range: [0, 0.7]", "alpha_range: 0; above 0"),
        ("anonymiser: mcadams\nalpha_range: 0.7", "alpha_range: 0.7; [a, b] with 2 values"),
        ("anonymiser: mcadams\nalpha_range: [0.7]", "alpha_range: [0.7]; [a, b] with 2 values"),
        (RANDOM + "alpha: 0.8", "alpha_range: alpha is given too"),
        (RANDOM + "level: speaker", "level: 'speaker' is unknown here; known: utt, spk, perm, con"),
        ("anonymiser: mcadams\nlevel: spk", "level: alpha is fixed, so no level applies"),
        ("anonymiser: mcadams\ncompat: vpc21", "compat: 'vpc21' is unknown; known: vpc20, vpc22"),
        ("anonymiser: mcadams\ncompat: vpc24\nlevel: const", "'const' is unknown here; known: spk"),
        ("anonymiser: mcadams\ncompat: vpc24\nclamp: true", "clamp: is fixed by compat: vpc24"),
        ("anonymiser: mcadams\npad_edges: 1", "pad_edges: 1; true or false is expected"),
        ("anonymiser: mcadams\npeak: 1.5", "peak: 1.5; above 0 and at most 1 is expected"),
        ("anonymiser: mcadams\norder: 0", "order: 0; 1 to 60 is expected"),
        ("anonymiser: mcadams\norder: 20.5", "order: 20.5; a whole number is expected"),
    ],
    CONVERSION: [
        ("neighbours: 0\n", "neighbours: 0; at least 1 is expected"),
        ("k: 0\n", "k: 0; at least 1 is expected"),
        ("f0: predicted\n", "f0: predicted: only synthesiser: bn_<name> predicts it"),
        ("f0_step: 0\n", "f0_step: 0; 0.01 to 10 is"),
        ("temperature: 0\n", "temperature: 0; above 0 is expected"),
        ("source_share: -1\n", "source_share: -1; 0 to 1 is expected"),
        ("f0: log\n", "f0: 'log' is unknown; known: none, linear, percentile"),
        ("gender: female\n", "gender: 'female' is unknown; known: same, other, random, any"),
        ("level: position\n", "level: 'position' is unknown; known: utt, spk, perm, const"),
        ("content_bend: 0.6\n", "content_bend: 0.6; 0 to 0.5"),
        ("content_scale: 0.1\n", "content_scale: it is of synthesiser: nsf_<name>"),
        ("synthesiser: x\n", "synthesiser: 'x'; world, or nsf_<name>"),
        ("level: const\n", "level: const: one voice for all cannot depend on who speaks"),
        ("voices: 3\n", "voices: unknown setting"),
        ("content: {step: 1}\n", "content: it is of synthesiser: bn_"),
    ],
    BOTTLENECK: [
        ("content: {noise: laplace}\nf0: linear\n", "content.noise: laplace: its epsilon holds"),
        ("content: {clip: 2, noise: pink}\n", "content.noise: 'pink'"),
        ("content: {clip: 2, noise: laplace, epsilon: 0}\n", "content.epsilon: 0"),
        ("ranges: {pitch: [2.0, 0.5]}\nf0: linear\n", "the lower end first"),
        ("ranges: {pitch_shift: 0.1}\n", "ranges: f0 must not be none"),
    ],
    "anonymiser: articulation\n": [
        ("sections: 3\n", "sections: 3"),
        ("smoothing: 50\n", "smoothing: 50"),
    ],
    "anonymiser: knn_vc\n": [
        ("features: mel", "features: 'mel' is unknown; known: world, content, wavlm"),
        ("level: position", "level: 'position' is unknown; known: utt, spk, perm, const"),
        ("gender: any", "gender: 'any' is unknown; known: same, other, random"),
        ("fusion: 2\nfusion_kind: sum", "fusion_kind: 'sum' is unknown; known: pool, mix"),
        ("fusion_kind: mix", "fusion_kind: there is one target; give fusion"),
        ("k: 0", "k: 0; at least 1 is expected"),
        ("fusion: 0", "fusion: 0; at least 1 is expected"),
        ("profiles: -1", "profiles: -1; at least 0 is expected"),
        ("max_frames: 3", "max_frames: 3; k is 4"),
        ("profile: 1", "profile: there are no profiles"),
        ("profiles: 8\nprofile: 9", "profile: 9; it must be from 1 to 8"),
        ("profiles: 8\nprofile: 0", "profile: 0; it must be from 1 to 8"),
        ("profiles: 8\nlevel: utt", "profiles: a profile belongs to a speaker"),
        ("f0: log", "f0: 'log' is unknown with features: world; known: linear"),
        ("features: wavlm\nf0: linear", "f0: 'linear' is unknown with features: wavlm"),
        ("vocoder: prematched", "vocoder: only features: wavlm has it"),
        ("features: wavlm\nwavlm_sha256: abc", "wavlm_sha256: 'abc'; 64 digits 0-9, a-f"),
        ("peak: 2", "peak: 2; above 0 and at most 1 is expected"),
        ("source_share: 1.5", "source_share: 1.5; 0 to 1 is expected"),
        ("features: wavlm\nsource_share: 0.4", "features: wavlm takes the voice's frames only"),
        ("voices: 3", "voices: unknown setting"),
        ("content: cepstra", "content: only features: content has it"),
    ],
}


@pytest.mark.parametrize(
    ("text", "message"), [(base + text, why) for base, rows in BAD.items() for text, why in rows]
)
def test_bad_settings_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "system.yaml"
    path.write_text(text)
    assert refuses(re.escape(message), describe_system, path).startswith(str(path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file and a variant of it."""
    shutil.copy(SYSTEMS / "b2.yaml", tmp_path)
    (tmp_path / VARIANTS).write_text("x: {base: b2, question: How much, alpha: 0.7}\n")
    return tmp_path


def test_a_variant_is_used_like_a_file(
    folder: Path, make_data_dir, capsys: pytest.CaptureFixture[str]
) -> None:
    data, (x, b2) = make_data_dir(folder / "data"), (folder / f"{n}.yaml" for n in ("x", "b2"))
    assert list_settings(folder) == ["b2", "x"] and is_settings(x) and not is_settings(folder)
    assert not is_settings(folder / VARIANTS) and not is_settings(folder / "y.yaml")
    assert read_settings(x) == {"anonymiser": "mcadams", "alpha": 0.7}
    assert load_system(x, 0).digest == digest_file(x) != digest_file(b2)
    assert anonymise([str(x), str(data), str(folder / "out"), str(folder / "out/wav")]) == 0
    assert '"alpha": 0.7' in (folder / "out/conf.json").read_text()
    b2.with_name("own.yaml").write_bytes(settings_text(x))
    assert digest_file(folder / "own.yaml") == digest_file(x)


def test_a_step_knows_when_its_variant_changes(folder: Path) -> None:
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
        ("{base: b2, alpha: 0.7}", "x: question: what this variant is for is expected, in words"),
        ("{base: b2, question: Q, alpa: 1}", "x: alpa: unknown setting; known: anonymiser, alpha"),
        ("{base: b2, question: Q, alpha: a}", "x: alpha: 'a'; a number is expected"),
        ("{base: b2, question: Q, anonymiser: c}", "x: anonymiser: 'c' is unknown"),
        ("{base: b2, question: Q, base: b2}", "base is given twice"),
        ("b2", "x: settings are expected, one `name: value` a line"),
        ("", "x: base: None is unknown"),
    ],
)
def test_a_bad_variant_is_one_line(folder: Path, variant: str, message: str) -> None:
    (folder / VARIANTS).write_text(f"x: {variant}\n")
    with pytest.raises(UserError, match=rf"/variants.yaml.*{re.escape(message)}") as error:
        describe_system(folder / "x.yaml")
    assert "\n" not in str(error.value)
