# SPDX-License-Identifier: Apache-2.0
"""Choice and division of the utterances of a data directory, independent of order and machine."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from utils.cli import UserError
from utils.datadir import DataDir
from utils.seeds import derive_seed
from utils.tables import sort_ids


def draw(ids: Iterable[str], count: int, seed: int, purpose: str) -> list[str]:
    """Draw `count` ids at random without replacement, in C order.

    An id is drawn by the rank of its own hash, so one more id in the data changes at most one drawn
    id. Raises UserError when there are fewer than `count`.
    """
    ranked = sorted(sort_ids(ids), key=lambda name: derive_seed(seed, "subset", purpose, name))
    if not 1 <= count <= len(ranked):
        raise UserError(f"{count} {purpose}s are asked for; there are {len(ranked)}")
    return sort_ids(ranked[:count])


def draw_per_speaker(data: DataDir, count: int, seed: int) -> list[str]:
    """Draw at most `count` utterances of each speaker."""
    if count < 1:
        raise UserError(f"{count} utterances a speaker are asked for; at least 1 is possible")
    return [
        utt
        for utts in data.spk2utt.values()
        for utt in draw(utts, min(count, len(utts)), seed, "utterance")
    ]


def evenly(ids: Sequence[str], count: int) -> list[str]:
    """Take `count` ids at even steps through the list, as Kaldi's subset_data_dir.sh does."""
    if not 1 <= count <= len(ids):
        raise UserError(f"{count} utterances are asked for; there are {len(ids)}")
    return [ids[index * len(ids) // count] for index in range(count)]


def shortest(data: DataDir, count: int) -> list[str]:
    """Choose the `count` shortest utterances by utt2dur; ties go to those that sort first."""
    seconds = data.utt2dur
    if seconds is None:
        raise UserError(
            f"{data.path}/utt2dur: is missing, so the shortest are not known; "
            f"make it with: utils/check_audio.py {data.path} {data.path}"
        )
    return sorted(sort_ids(data.utt2spk), key=lambda utt: seconds[utt])[:count]


def utterances_of(data: DataDir, speakers: Collection[str]) -> list[str]:
    """Utterances of some speakers; UserError for an unknown speaker."""
    for spk in speakers:
        if spk not in data.spk2utt:
            raise UserError(f"{data.path}/utt2spk: has no speaker {spk}")
    return [utt for spk in sort_ids(speakers) for utt in data.spk2utt[spk]]


def divide(
    groups: Mapping[str, Sequence[str]], weights: Mapping[str, float], n: int
) -> list[set[str]]:
    """Divide groups of utterances into at most n parts of about equal weight, groups kept whole.

    The heaviest group first, each into the part that is lightest so far; ties go by id and by
    number of the part. There are never more parts than groups, so no part is empty.
    """
    parts: list[set[str]] = [set() for _ in range(min(n, len(groups)))]
    loads = [0.0] * len(parts)
    weight = {name: sum(weights[utt] for utt in utts) for name, utts in groups.items()}
    for name in sorted(sort_ids(groups), key=lambda name: -weight[name]):
        lightest = min(
            range(len(parts)), key=lambda index: (loads[index], len(parts[index]), index)
        )
        parts[lightest].update(groups[name])
        loads[lightest] += weight[name]
    return parts


def known_utterances(data: DataDir, utts: Sequence[str], source: str) -> Sequence[str]:
    """Return `utts`; UserError if the data directory lacks one."""
    if unknown := [utt for utt in utts if utt not in data.utt2spk]:
        raise UserError(
            f"{source}: {len(unknown)} of {len(utts)} utterances are not in {data.path} "
            f"(first: {unknown[0]})"
        )
    return utts
