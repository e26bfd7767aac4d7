#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Make what a recogniser knows of a corpus's language, and say how much of the corpus it covers.

LANGUAGE is `general` (PocketSphinx's English model), `trigram` (estimated from the transcripts of
--train), a grammar (<file>.jsgf), or a folder with lexicon.dict (<word> <phone>...) and lm.arpa or
grammar.jsgf. OUT gets lang.json (kind, size of the vocabulary, share of the words of each --count
that it does not have) and the files of the language. Words without a pronunciation cannot be
recognised and are not in the vocabulary.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from utils.cli import UserError
from utils.commands import program
from utils.datadir import load_data_dir
from utils.options import OutFolder


def _texts(data: Path) -> dict[str, str]:
    return load_data_dir(data, need=("utt2spk", "text"), allow_segments=True).tables["text"]


@program
def main(
    language: Annotated[str, "The language (see above)"],
    out: OutFolder, *,
    train: Annotated[
        Path | None, "The data directory whose transcripts make a trigram", "DATA",
    ] = None,
    count: Annotated[
        Sequence[Path], "A data directory whose words that are not in the vocabulary are "
        "counted; may be given again", "DATA",
    ] = (),
) -> None:  # fmt: skip
    from steps.asr.language import count_unknown, read_source, trigram, vocabulary, write_language

    if language == "trigram":
        if train is None:
            raise UserError("trigram: --train DATA is needed: a set with transcripts")
        made = trigram(_texts(train).values())
    else:
        made = read_source(language)
    words = vocabulary(made)
    print(f"{language}: a vocabulary of {len(words)} words")
    unknown: dict[str, float] = {}
    for data in count:
        missing, total = count_unknown(words, _texts(data))
        unknown[data.name] = missing / total if total else 0.0
        print(
            f"{data}: {missing} of {total} words ({100 * unknown[data.name]:.2f} %) are not in it"
        )
    write_language(out, made, {"n_words": len(words), "oov": unknown})
