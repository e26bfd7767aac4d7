#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Write OUT/utterances.tsv, which prepare.sh reads, from a table of recordings or a Kaldi data
directory; utils/new_corpus.sh runs this.

A table has tabs, a header line `file speaker sex text` and a line for each recording. `sex` is f, m
or other. `text` may be missing; `utt`, `age` (years), `emotion` and `language` may be there. Files
are found from the table's folder; a copy of another one is refused. Of a Kaldi directory (wav.scp
utt2spk spk2gender, and segments, text, spk2age, utt2emotion, utt2lang where it has them) each
command and segment becomes a file in OUT/audio. Its commands are run.
"""

from pathlib import Path
from typing import Annotated

from utils.commands import program
from utils.options import OutFolder


@program
def main(source: Annotated[Path, "The table, or the directory", "SOURCE"], out: OutFolder) -> None:
    from collections import Counter

    from local.protocols.utterances import PEOPLES, READ, read_utterances, rows_of_kaldi
    from utils.cli import UserError, progress
    from utils.datachecks import GENDERS, OTHER
    from utils.digests import digest_file
    from utils.tables import atomic_write, need_files

    if source.is_dir():
        need_files(
            [source / "wav.scp"], "a folder of recordings needs a table: tabs, a header line "
            "file speaker sex text, and a line for each recording (egs/README.md)",
        )  # fmt: skip
        rows = [*rows_of_kaldi(source, out, progress("make_table", unit="recordings"))]
    else:
        theirs = {ours: name for name, ours in PEOPLES.items()}
        rows = [{theirs.get(k, k): v for k, v in row.items()} for row in read_utterances(source)]
    people = {row["speaker"]: row.get("sex", "") for row in rows}
    for name, sex in people.items():
        if sex not in GENDERS:
            raise UserError(f"{source}: {name} has sex {sex!r}; f, m or {OTHER} is expected")
    heard: dict[str, Path] = {}
    for path in (out / row["file"] for row in rows):
        if path.is_file() and (first := heard.setdefault(digest_file(path), path)) != path:
            raise UserError(f"{source}: {path} is a copy of {first}; keep the line of one")
    with atomic_write(out / "utterances.tsv") as stream:
        stream.writelines("\t".join(row) + "\n" for row in (rows[0], *(r.values() for r in rows)))
    each = ", ".join(f"{n} {sex}" for sex, n in sorted(Counter(people.values()).items()))
    print(f"{source}: {len(rows)} recordings of {len(people)} speakers ({each})")
    if others := [name for name in rows[0] if name not in READ]:
        print(f"{source}: columns that nothing reads: {', '.join(others)}")
