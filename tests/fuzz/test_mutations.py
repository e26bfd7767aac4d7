"""More than a thousand bad inputs and mutations, the same at every run: no traceback, no silence.

Each target is a good file and its reader. Made wrong on purpose, it must end in a UserError of one
line that names a file; mutated at random (when it may still be good) it must not end otherwise
than well or so. What asks for gigabytes ends in a MemoryError here, and what hangs ends the test.
"""

import json
import random
import resource
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
import soundfile
import torch
import yaml

from local.protocols.attackers import AttackSet
from local.report.frame import METRICS, SPEAKERS, WHERE, write_frame
from local.report.gather import attacks, gather, settings_of_systems, tabulate
from local.report.results import load_results
from steps.anonymisers.registry import describe_system
from steps.audio import read_audio
from steps.generators.idmap import MlpNetwork, MlpSettings
from steps.populations import pairs as large
from steps.speaker.backends import CosineBackend, load_backend, train_backend, write_backend
from steps.speaker.config import EncoderConfig
from steps.speaker.encoders import load_network
from steps.speaker.network import EncoderNetwork
from steps.synthesis.trained import NsfConfig, NsfNetwork, NsfSynthesiser
from steps.training.settings import read_config
from tests.fuzz.mutations import EVERY, RANDOM, WRONG, Change, odd_settings, odd_weights
from tests.test_encoders import TINY
from tests.test_generators_wgan import load_trained, people, settings, train_generator
from tests.test_inputs import NETWORKS, NO_FILES, make_no_file
from tests.waiting import LIMIT
from tests.world import encoded_by_av
from utils import stamps
from utils.archives import ArchiveWriter, ObjectReader, read_counts, read_vectors
from utils.cli import UserError
from utils.datachecks import validate_data_dir
from utils.datadir import load_data_dir
from utils.settings import parse_settings, read_settings, settings_text
from utils.tables import write_file, write_map
from utils.trials import read_scores, read_trials

CONF = Path(__file__).resolve().parents[2] / "egs/TEMPLATE/conf"
SEED = 18
MUTATIONS = 12  # at random, of each target
MEMORY = 4 << 30  # bytes that a reader may take beside what the tests hold
SYSTEMS = (
    *("mcadams_r", "b2r", "b1_f0", "copy", "const_01", "average", "random", "psd"),
    *("wgan", "idmap_mlp", "knnvc_perm", "knnvc_content"),
)


@dataclass(frozen=True)
class Target:
    """A good file and what reads it.

    kind: of `WRONG`. right: names of changes that leave this file good. more: changes of its own
    that make it wrong.
    """

    path: Path
    kind: str
    read: Callable[[], object]
    right: tuple[str, ...] = ()
    more: Sequence[tuple[str, Change]] = ()

    def wrong(self) -> list[tuple[str, Change | None]]:
        """Changes that must be refused; None: the file is gone, or no file."""
        gone = [(name, None) for name in ("missing", *NO_FILES)]
        every = [*gone, *EVERY.items(), *WRONG[self.kind].items(), *self.more]
        return [(name, change) for name, change in every if name not in self.right]


def _must(holds: object, what: object) -> None:
    """For readers that tell of problems otherwise: a UserError that names a file."""
    if not holds:
        raise UserError(f"told: /{what}")


def _write(path: Path, text: str) -> Path:
    write_file(path, text)
    return path


def of_data(root: Path, data: Path) -> Iterator[Target]:
    """A data directory of a protected set, its tables read as tools do."""
    utts = list(load_data_dir(data).utt2spk)
    _write(data / "trials", f"s1 {utts[0]} target\ns1 {utts[-1]} nontarget\n")
    _write(data / "enrolls", "".join(f"{utt}\n" for utt in utts[:2]))
    _write(data / "pseudo.tsv", "#utt\tkey\n" + "".join(f"{utt}\tk\n" for utt in utts))
    _write(data / "conf.json", json.dumps({"system": {"anonymiser": "b2"}, "seed": 0, "draw": 0}))

    def read() -> None:
        problems = [problem for problem in validate_data_dir(data) if problem.fatal]
        load_data_dir(data)
        _must(not problems, problems)

    needed = ("utt2spk", "wav.scp")
    right = {
        "text": ("field more",), "trials": ("stranger", "row less"),
        "enrolls": ("field more", "row less", "no-break space"),
    }  # fmt: skip
    for name in ("utt2spk", "spk2utt", "wav.scp", "text", "utt2dur", "spk2gender", *right):
        optional = () if name in needed else ("missing",)
        yield Target(data / name, "table", read, (*right.get(name, ()), *optional))
    pseudo, right_of_pseudo = data / "pseudo.tsv", ("no-break space", "field more")
    yield Target(pseudo, "table", lambda: AttackSet.read(data).draws(), right_of_pseudo)
    speech = [("b2", "", str(data))]

    def read_conf() -> None:
        told = settings_of_systems(speech)[1]
        AttackSet.read(data)
        _must(not told, told)

    yield Target(data / "conf.json", "json", read_conf)
    lists = ("stranger", "row less")
    pairs = [f"{s} {utt}" for s in ("s1", "s2") for utt in utts]
    labels = {pair: f"{'non' * (pair[:2] not in pair[2:])}target" for pair in pairs}
    for name, rows, reader in (
        ("trials", labels, read_trials),
        ("scores", {pair: f"0.{n}" for n, pair in enumerate(pairs)}, read_scores),
        ("num_utts.ark", {"s1": 3, "s2": 10}, read_counts),
    ):
        write_map(root / name, rows, blanks=True)
        yield Target(root / name, "table", partial(reader, root / name), lists)
    for name in ("a.wav", "a.flac"):
        soundfile.write(root / name, np.random.default_rng(0).normal(0, 0.1, 4000), 16000)
        yield Target(root / name, name[2:], partial(read_audio, "utt", str(root / name)))
    for form, codec in (("mp4", "aac"), ("webm", "libopus"), ("asf", "wmav2"), ("ogg", "libopus")):
        other = root / f"a.{form}"
        other.write_bytes(encoded_by_av(np.sin(np.arange(32000) / 9), form, codec))
        yield Target(other, "other audio", partial(read_audio, "utt", str(other)))


def of_archives(root: Path) -> Iterator[Target]:
    """x-vectors, matrices and a back end."""
    rng = np.random.default_rng(0)
    vectors = {f"{s}-{i}": rng.normal(size=5).astype(np.float32) for s in "abcd" for i in range(4)}
    utt2spk = {utt: utt[0] for utt in vectors}
    with ArchiveWriter(root / "xvector") as writer, ArchiveWriter(root / "frames") as frames:
        for utt in list(vectors)[:5]:
            writer.write(utt, vectors[utt])
            frames.write(utt, rng.normal(size=(3, 4)))
    whole = root / "xvector.ark"
    yield Target(whole, "archive", lambda: read_vectors(whole))

    def read_frames(path: Path) -> list[object]:
        reader = ObjectReader(path)
        return [reader.matrix(key) for key in (*reader, *list(vectors)[:5])]

    for stem, read in (("xvector", read_vectors), ("frames", read_frames)):
        ark, scp = root / f"{stem}.ark", root / f"{stem}.scp"
        yield Target(ark, "binary", lambda read=read, scp=scp: read(scp), ("noise",))
        yield Target(scp, "table", lambda read=read, scp=scp: read(scp), ("stranger", "row less"))
    write_backend(root / "backend", train_backend(vectors, utt2spk, 3))
    for name, kind in (("mean.vec", "text"), ("transform.mat", "binary"), ("plda", "binary")):
        yield Target(root / "backend" / name, kind, lambda: load_backend(str(root / "backend")))


def of_settings(root: Path) -> Iterator[Target]:
    """YAML files of this project, and each of their settings with values of other kinds."""
    readers: dict[str, Callable[[Path], object]] = {**NETWORKS}
    readers |= {f"systems/{name}": describe_system for name in SYSTEMS}
    for name, read in readers.items():
        path = _write(root / f"{name}.yaml", settings_text(CONF / f"{name}.yaml").decode())
        yield Target(path, "yaml", lambda path=path, read=read: read(path), (), odd_settings(path))


def of_results(root: Path) -> Iterator[Target]:
    """Figures, what they came from, and the results that a report is made of."""
    folder = root / "figures"
    words = ("x", "x_f", "f", "b2", "verification", "ignorant", "e", "OA")
    of = dict(zip(WHERE, words, strict=True))
    command = ["job", str(folder), "x.py", "--a", "1"]
    stamps.Step([folder], command).begin()
    figures = {
        "eer": 0.1, "tag": "A", "n_speakers": 4, "intervals": {"eer": [0.05, 0.2]},
        "eer_per_speaker": {"a": 0.1}, "cmc_curve": {"cmc": [0.5, 1.0]},
        "sim_oo": {"a": {"a": 1.0, "b": 0.5}, "b": {"a": 0.5, "b": 1.0}},
        "zoo_oo": {"a": [1.0, 2.0], "b": [2.0, 3.0]},
    }  # fmt: skip
    path = _write(folder / "metrics.json", json.dumps(figures))
    stamps.Step([folder], command).finish()
    yield Target(path, "json", lambda: (tabulate(folder, of), gather({folder: of}, [folder], [])))

    def current() -> None:
        why = stamps.Step([folder], command).why()
        stamps.provenance(folder)
        stamps.is_current(folder, {})
        _must(why is None, why)

    # Stamps that cannot be read say that a step is not finished.
    yield Target(folder / stamps.DONE, "json", current)
    _write(root / "attack/scores", "s u 0.1\n")
    path = _write(root / "attack/attacker.json", json.dumps({"attacker": "ignorant"}))

    def read_attack() -> None:
        told = attacks({folder: of}, [(folder, root, root / "attack")])[1]
        _must(not told, told)

    yield Target(path, "json", read_attack)
    results = root / "results"
    rows = tabulate(folder, of)[0]
    write_frame(results / "metrics.csv", METRICS, rows)
    write_frame(results / "per_speaker.csv", SPEAKERS, tabulate(folder, of)[1])
    for name, value in (("figures", {}), ("clips", [{}]), ("run", {"corpus": "x"})):
        _write(results / f"{name}.json", json.dumps(value))

    def read_results() -> None:
        missing = load_results(results).missing
        _must(not missing, missing)

    csv: list[tuple[str, Change]] = [
        ("half", lambda d: d[: d.index(b"OA")]),
        ("latin", lambda d: d + b"\xe9"),
        ("column", lambda d: d.replace(b"metric", b"figure", 1)),
        ("field less", lambda d: d + b"a,b\n"),
        ("quote", lambda d: d + b'"a\n'),
        ("nul", lambda d: d + b"a\0b\n"),
    ]
    yield Target(results / "metrics.csv", "csv", read_results, (), csv)
    for name in ("figures", "run"):
        yield Target(results / f"{name}.json", "json", read_results)
    no_list = [("object", lambda _: b"{}")]
    yield Target(results / "clips.json", "json", read_results, ("list",), no_list)


def of_plans(root: Path) -> Iterator[Target]:
    """A count of pairs that goes on."""
    rng, kept = np.random.default_rng(0), root / "counts.partial"
    speakers = [f"s{n // 3}" for n in range(12)]
    ids = [f"u{n}" for n in range(12)]
    side = large.PairSide(ids, speakers, rng.normal(size=(12, 4)), np.ones(12))
    plan = large.make_plan(side, side, CosineBackend(), n_bins=256, n_groups=4)
    total = large.count_pairs(plan, checkpoint=kept, every=0.0)
    yield Target(kept, "binary", lambda: large._resume(total, kept))


def of_networks(root: Path) -> Iterator[Target]:
    """Trained networks: settings and weights."""
    torch.manual_seed(0)
    folders: dict[str, tuple[str, Callable[[Path], object]]] = {}
    path = _write(root / "encoder/encoder.yaml", TINY)
    torch.save(
        EncoderNetwork(read_config(EncoderConfig, path)).state_dict(), path.with_name("final.pt")
    )
    folders["encoder"] = "encoder.yaml", load_network
    sizes = {"channels": 4, "condition": 2, "bands": 4, "noise_bands": 2, "encoder_channels": 2}
    values = {"synthesiser": "nsf", "training": {"steps": 1}, "network": sizes}
    path = _write(root / "nsf/synthesiser.yaml", yaml.safe_dump(values))
    config = read_config(NsfConfig, path)
    state = NsfNetwork(config.network, config.cepstra, 6).state_dict()
    torch.save(state, path.with_name("final.pt"))
    folders["nsf"] = "synthesiser.yaml", NsfSynthesiser.load
    train_generator(settings(steps=2), "conf", people(), root / "wgan", seed=0)
    folders["wgan"] = "generator.yaml", load_trained
    values = {"generator": "idmap_mlp", "network": {"identity": 8, "width": 8}}
    trained = read_settings(root / "wgan/generator.yaml")["trained"]
    path = _write(root / "idmap/generator.yaml", yaml.safe_dump({**values, "trained": trained}))
    network = MlpNetwork(parse_settings(MlpSettings, values, path).network, 6)
    torch.save(network.state_dict(), path.with_name("final.pt"))
    folders["idmap"] = "generator.yaml", load_trained
    for name, (conf, read) in folders.items():
        read_folder = partial(read, root / name)
        yield Target(root / name / conf, "yaml", read_folder)
        weights = root / name / "final.pt"
        yield Target(weights, "binary", read_folder, ("short",), odd_weights(weights))


class Hang(BaseException):
    """Nobody takes it for what a file may do."""


@contextmanager
def limits() -> Iterator[None]:
    """Nothing asks for all memory, and what hangs ends."""

    def stop(signal_: int, frame: FrameType | None) -> None:
        raise Hang

    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    handler = signal.signal(signal.SIGALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, hard))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


def outcome(read: Callable[[], object]) -> str:
    """`passed`, `refused`, or what went wrong."""
    signal.alarm(LIMIT)
    try:
        read()
    except UserError as error:
        text = str(error)
        return "refused" if "\n" not in text and "/" in text else f"told badly: {text!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "passed"


def attempts(target: Target) -> Iterator[tuple[str, bool, str]]:
    """Name of each change, whether it must be refused, and the outcome."""
    good = target.path.read_bytes()
    target.read()
    name = f"{target.path.parent.name}/{target.path.name}"
    wrong = target.wrong()
    dice = [random.Random(f"{SEED} {name} {number}") for number in range(MUTATIONS)]
    changes = [(f"mutation {n}", lambda d, r=r: r.choice(RANDOM)(r, d)) for n, r in enumerate(dice)]
    for number, (what, change) in enumerate([*wrong, *changes]):
        if change is not None:
            target.path.write_bytes(change(good))
        elif what == "missing":
            target.path.unlink()
        else:
            make_no_file(target.path, what)
        yield f"{name}: {what}", number < len(wrong), outcome(target.read)
        if target.path.is_dir():
            target.path.rmdir()
        elif change is None:
            target.path.unlink(missing_ok=True)
        target.path.write_bytes(good)


@pytest.mark.slow
def test_bad_inputs_end_in_one_line(here, make_data_dir):
    data = make_data_dir(here / "d", {"s1": 3, "s2": 3})
    made = (of_archives, of_settings, of_results, of_plans, of_networks)
    targets = [*of_data(here, data), *(target for make in made for target in make(here))]
    counts: Counter[str] = Counter()
    bad: list[str] = []
    with limits(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for target in targets:
            for name, must_fail, found in attempts(target):
                counts[found if found in ("passed", "refused") else "other"] += 1
                if found not in ("passed", "refused") or (must_fail and found == "passed"):
                    bad.append(f"{name}: {found}")
    print(f"{counts.total()} inputs of {len(targets)} targets: {dict(counts)}")
    assert not bad, f"{len(bad)} of {counts.total()}:\n" + "\n".join(bad)
    assert counts.total() > 1000
