#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Make docs/samples.html, a page of speech that systems protected, and its clips in docs/clips.

Two women and two men of LibriSpeech's test-clean: the first of each, by number, with recordings of
4 to 7 s in two chapters, and of each chapter the first one. Their originals are not copied. One
synthetic woman and one man of this project: the first whose recording Moonshine writes down without
an error, as it stands and protected. Speech: LibriSpeech from $PSEUDOVOX_CORPORA or
../shared/corpora.

  benchmarks/make_samples.py [SYSTEM ...]

SYSTEM: a folder of models/, or a file of conf/systems/; models/place and three others without any.
The key of these voices is public, so that the page can be made again.
"""

import csv
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import CORPORA, ROOT
from local.report.gather import mp3
from steps.asr.engines import MoonshineRecogniser
from steps.asr.language import normalise_english
from steps.audio import SAMPLE_RATE, read_audio
from steps.make_synthetic_corpus import main as make_synthetic_corpus
from steps.protect_folder import main as protect
from utils.datadir import load_data_dir
from utils.tables import write_file

SYSTEMS = ("models/place", "models/bn2", "models/read", "egs/TEMPLATE/conf/systems/b2r.yaml")
KEY = "samples of pseudovox"
SECONDS = (4.0, 7.0)
SEXES = {"f": "woman", "m": "man"}
STYLE = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; table-layout: fixed; width: 100% }
td, th { padding: .2rem .4rem; text-align: left } th:first-child { width: 4.5rem }
audio { width: 100%; min-width: 7rem }
"""


class Recording(NamedTuple):
    """Who says what, and where; synthetic voices are also heard as they are."""

    who: str
    name: str
    words: str
    path: Path


def readers(corpus: Path) -> Iterator[Recording]:
    """Two recordings of each of two women and two men, of different chapters."""
    with (corpus / "utts.tsv").open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines, delimiter="\t")
                if row["subset"] == "test-clean"
                and SECONDS[0] <= float(row["seconds"]) <= SECONDS[1]]  # fmt: skip
    people: dict[str, dict[str, dict[str, str]]] = {}
    for row in sorted(rows, key=lambda row: row["utt"]):
        people.setdefault(row["speaker"], {}).setdefault(row["utt"].split("-")[1], row)
    for sex, called in SEXES.items():
        able = (own for _, own in sorted(people.items(), key=lambda item: int(item[0]))
                if len(own) > 1 and next(iter(own.values()))["gender"] == sex)  # fmt: skip
        for number, own in enumerate(islice(able, 2), 1):
            for row in islice(own.values(), 2):
                path = corpus / row["file"]
                said = path.with_name(f"{row['utt'].rpartition('-')[0]}.trans.txt").read_text()
                words = next(line for line in said.splitlines() if line.startswith(row["utt"]))
                yield Recording(
                    f"Reader: {called} {number}", row["utt"], words.partition(" ")[2].lower(), path
                )


def synthetic(folder: Path) -> Iterator[Recording]:
    """A woman and a man whom Moonshine understands."""
    words = ["--channel", "0", "--within", "0.2", "--utterances", "2"]
    make_synthetic_corpus([*words, str(folder / "audio"), str(folder / "data")])
    data, recogniser = load_data_dir(folder / "data"), MoonshineRecogniser()
    sexes, said = data.tables["spk2gender"], data.tables["text"]
    for sex, called in SEXES.items():
        for utt in (utt for utt, speaker in data.utt2spk.items() if sexes[speaker] == sex):
            path = Path(data.wav[utt])
            heard = recogniser.recognise(utt, read_audio(utt, str(path)).samples)
            if normalise_english(heard.words) == normalise_english(said[utt]):
                yield Recording(f"Synthetic {called}", utt, said[utt].lower(), path)
                break


def table(recordings: list[Recording], systems: list[str]) -> str:
    """A person: what they say, and a row of clips for each system."""
    made = ["original", *systems] if recordings[0].who.startswith("Synthetic") else systems
    heads = "".join(f"<th>{escape(one.words)}</th>" for one in recordings)
    rows = [f"<tr><th></th>{heads}</tr>"]
    for system in made:
        cells = "".join(
            f'<td><audio controls preload="none" src="clips/{one.name}.{system}.mp3" '
            f'aria-label="{escape(one.words)}, {system}"></audio></td>'
            for one in recordings
        )
        rows.append(f"<tr><th>{system}</th>{cells}</tr>")
    return f"<h2>{recordings[0].who}</h2>\n<table>\n" + "\n".join(rows) + "\n</table>\n"


def main() -> None:
    """Protect, and write clips and page."""
    systems = {Path(system).stem: system for system in sys.argv[1:] or SYSTEMS}
    docs = ROOT / "docs"
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "recordings"
        source.mkdir()
        heard = [*readers(CORPORA / "librispeech"), *synthetic(Path(work))]
        for one in heard:
            (source / f"{one.name}{one.path.suffix}").symlink_to(one.path.resolve())
        folders = {}
        for name, system in systems.items():
            folders[name] = Path(work) / name
            protect(["--system", str(ROOT / system), "--key", KEY, str(source), str(folders[name])])
        for old in (docs / "clips").glob("*.mp3"):
            old.unlink()
        for one in heard:
            made = {name: out / f"{one.name}{one.path.suffix}" for name, out in folders.items()}
            if one.who.startswith("Synthetic"):
                made["original"] = one.path
            for name, path in made.items():
                samples = read_audio(one.name, str(path)).samples
                write_file(docs / "clips" / f"{one.name}.{name}.mp3", mp3(samples))
    people: dict[str, list[Recording]] = {}
    for one in heard:
        people.setdefault(one.who, []).append(one)
    write_file(docs / "samples.html", page([*people.values()], [*systems]))


def page(people: list[list[Recording]], systems: list[str]) -> str:
    """The page, which loads nothing but its clips."""
    low, high = SECONDS
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Protected speech to hear</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{STYLE}</style></head><body>
<h1>Protected speech to hear</h1>
<p>Each reader says two sentences, and each recording got a voice of its own. Can you tell that both
are of one person? <b>place</b> is the default; <b>bn2</b> keeps content and time; <b>read</b> says
only recognised words; <b>b2r</b> is a baseline of challenges. <a href="anonymisers.md">What the
systems do</a>, and <a href="../README.md#what-it-does-to-real-speech">what attackers still
find</a>.</p>
{"".join(table(one, systems) for one in people)}
<p><small>A program chose the recordings by rule (benchmarks/make_samples.py): the first two women
and two men of LibriSpeech's test-clean with recordings of {low:g} to {high:g} s in two chapters,
and of each chapter the first one. LibriSpeech: © 2014 Vassil Panayotov, CC BY 4.0; these are
adaptations, under the same licence. Its originals are not copied here. Synthetic voices are this
project's own, at {SAMPLE_RATE // 1000} kHz: the first woman and man whom a recogniser writes down
without an error. They show how systems sound, and not how well they hide.</small></p>
</body></html>
"""


if __name__ == "__main__":
    main()
