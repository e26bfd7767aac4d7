# SPDX-License-Identifier: Apache-2.0
"""Files of a Kaldi data directory: the keys of each, and the number of fields in a line."""

import math
from dataclasses import dataclass
from typing import Literal

Key = Literal["utterance", "speaker", "recording"]
NOTES = "notes.txt"  # faults, by utterance; absent where there are none


@dataclass(frozen=True)
class FileSpec:
    """Table of a data directory: `<key> <value>` lines, sorted by key, each key once.

    `fewest` and `most` bound the number of fields, the key included (`most` None: no bound).
    `complete` tables have a line for every utterance, speaker or recording.
    """

    key: Key
    fewest: int = 2
    most: int | None = 2
    complete: bool = True

    def noun(self, segmented: bool) -> str:
        """Kind of the keys for a reader: recordings are utterances where there are no segments."""
        return "utterance" if self.key == "recording" and not segmented else self.key

    def accepts(self, n_fields: int) -> bool:
        """Whether a line of that many fields is well formed."""
        return self.fewest <= n_fields and (self.most is None or n_fields <= self.most)

    @property
    def fields(self) -> str:
        """Allowed number of fields in words."""
        if self.most == self.fewest:
            return str(self.fewest)
        return f"{self.fewest} or more" if self.most is None else f"{self.fewest} to {self.most}"


# A recording is an utterance where there is no `segments`.
FILES: dict[str, FileSpec] = {
    "utt2spk": FileSpec("utterance"),
    "spk2utt": FileSpec("speaker", most=None),
    "wav.scp": FileSpec("recording", most=None),
    "segments": FileSpec("utterance", fewest=4, most=4),
    "text": FileSpec("utterance", fewest=1, most=None),
    "spk2gender": FileSpec("speaker"),
    "utt2dur": FileSpec("utterance"),
    "reco2dur": FileSpec("recording"),
    "utt2num_frames": FileSpec("utterance"),
    "feats.scp": FileSpec("utterance", most=None),
    "vad.scp": FileSpec("utterance", most=None),
    "cmvn.scp": FileSpec("speaker", most=None),
    "utt2uniq": FileSpec("utterance"),
    "utt2lang": FileSpec("utterance"),
    "utt2emotion": FileSpec("utterance"),
    "utt2warp": FileSpec("utterance"),
    "spk2warp": FileSpec("speaker"),
    "reco2file_and_channel": FileSpec("recording", fewest=4, most=4),
    "enrolls": FileSpec("utterance", fewest=1, most=None, complete=False),
}
GENDERS = ("m", "f")
LABELS = ("target", "nontarget")


def value_problem(name: str, value: str) -> str:
    """Fault of a line's value in the file `name`, or an empty string."""
    if name == "spk2gender" and value not in GENDERS:
        return f"the gender is {value!r}; only m and f are known"
    if name in ("utt2dur", "reco2dur") and not _is_positive(value):
        return f"the duration is {value!r}; seconds above 0 are expected"
    if name == "utt2num_frames" and not (value.isascii() and value.isdigit() and value.strip("0")):
        return f"the number of frames is {value!r}; a whole number from 1 is expected"
    if name == "segments":
        _, start, end = (part for part in value.replace("\t", " ").split(" ") if part)
        # -1 means: to the end of the recording.
        if not _is_number(start) or float(start) < 0 or not (end == "-1" or _is_positive(end)):
            return f"from {start} to {end} is no time span in seconds"
        if end != "-1" and float(end) <= float(start):
            return f"the segment ends ({end}) before it starts ({start})"
    return ""


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_positive(text: str) -> bool:
    return _is_number(text) and float(text) > 0
