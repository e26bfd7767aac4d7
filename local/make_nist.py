#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Make the material of the NIST study (Seo et al. 2025): segments of sessions, and trial sets."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from utils.cli import UserError, boolean, positive
from utils.commands import commands
from utils.datadir import DataDir, load_data_dir, write_data_dir
from utils.options import DataFolder, OutFolder
from utils.tables import invert, need_ids, read_map, write_map

SKIPPED = 60.0  # seconds at the beginning of a session of at least LONG
LONG = 300.0


def _sessions(data: DataDir, table: Path) -> dict[str, list[str]]:
    """Utterances of each session; UserError for one without, or of several speakers."""
    sessions = read_map(table)
    need_ids(data.utt2spk, sessions, table, "add its session")
    utts = invert({utt: sessions[utt] for utt in data.utt2spk})
    for name, own in utts.items():
        if len({data.utt2spk[utt] for utt in own}) > 1:
            raise UserError(f"{table}: session {name} has several speakers; split it")
    return utts


def _cut(files: Iterable[Any], detector: Any, seconds: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Yield nominal seconds and samples of each segment of a session."""
    import numpy as np

    from local.protocols.studies import deal
    from steps.audio import SAMPLE_RATE

    wave, frame = np.concatenate([*files]), detector.frame / SAMPLE_RATE
    begin = SKIPPED if len(wave) >= LONG * SAMPLE_RATE else 0.0
    for one in deal(detector.detect(wave), frame, seconds, round(begin / frame)):
        yield one.nominal, wave[one.start * detector.frame : one.stop * detector.frame]


def _segments(
    data_dir: DataFolder,
    session_table: Annotated[Path, "The table of each utterance's session", "UTT2SESSION"],
    out: OutFolder, wav_dir: Annotated[Path, "The folder of the audio that is written"], *,
    seconds: Annotated[
        tuple[int, ...], "The numbers of seconds of speech that segments hold, in turn", "N",
        positive,
    ] = (10, 30, 60),
    least_sessions: Annotated[
        int, "The number of sessions that a speaker must have; others are left out and counted",
        "N",
    ] = 5,
    vad: Annotated[
        Literal["webrtc", "silero"], "The detector of speech: WebRTC's, or Silero's network (the "
        "package silero-vad)",
    ] = "webrtc",
) -> None:  # fmt: skip
    """Cut sessions into segments of 10, 30 and 60 s of speech in turn (section 3.1).

    DATA is a data directory; UTT2SESSION says of which session each utterance is (of LibriSpeech:
    its chapter). The utterances of a session are put together in the order of their ids. OUT
    becomes a data directory of segments (WAV_DIR has their audio) with the tables utt2session and
    utt2duration, which nist.sh takes (--sessions, --durations).
    """
    import numpy as np

    from local.protocols.studies import enough_sessions
    from steps.audio import DETECTORS, read_audio, write_wav

    data = load_data_dir(data_dir, need=("wav.scp", "utt2spk"))
    utts = _sessions(data, session_table)
    spk_of = {name: data.utt2spk[own[0]] for name, own in utts.items()}
    kept, few = enough_sessions(spk_of, least_sessions)
    made: dict[str, tuple[str, ...]] = {}
    for name in kept:
        files = (read_audio(utt, data.wav[utt]).samples for utt in utts[name])
        for number, (nominal, part) in enumerate(_cut(files, DETECTORS[vad], seconds), start=1):
            utt = f"{spk_of[name]}-{name}-{number:03}"
            path = (wav_dir / f"{utt}.wav").absolute()
            path.parent.mkdir(parents=True, exist_ok=True)
            write_wav(path, np.clip(part, -1, 1))  # resampling overshoots full scale
            made[utt] = (str(path), spk_of[name], name, str(nominal))
    if not made:
        raise UserError(
            f"{data_dir}: no session of a speaker with {least_sessions} sessions holds "
            f"{min(seconds)} s of speech; see --least-sessions and --seconds"
        )
    names = ("wav.scp", "utt2spk", "utt2session", "utt2duration")
    tables = {name: {utt: row[i] for utt, row in made.items()} for i, name in enumerate(names)}
    for name in names[2:]:
        write_map(out / name, tables.pop(name))
    speakers = set(tables["utt2spk"].values())
    if genders := data.spk2gender:
        tables["spk2gender"] = {who: genders[who] for who in speakers}
    write_data_dir(out, tables)
    print(
        f"{out}: {len(made)} segments of {len(speakers)} speakers, {len(kept)} sessions; "
        f"{len(few)} speakers with fewer than {least_sessions} sessions are left out"
    )


def _trials(
    data_dir: DataFolder, out: OutFolder, *,
    same_gender: Annotated[
        bool, "Compare speakers of one gender only", "true|false", boolean,
    ] = True,
    sessions: Annotated[
        Path | None, "The table of each segment's session; segments of one session are not "
        "compared", "UTT2SESSION",
    ] = None,
    durations: Annotated[
        Path | None, "The table of each segment's nominal duration; segments of one are compared",
        "UTT2DURATION",
    ] = None,
    training: Annotated[
        Sequence[Path], "A training set none of whose speakers may be among the segments'; may "
        "be given again", "DATA",
    ] = (),
) -> None:  # fmt: skip
    """Make the trial sets of the NIST study (Seo et al. 2025, Table 4) from the segments of a set.

    DATA is a data directory (utt2spk; spk2gender unless --same-gender false). OUT gets

      trial1/trials  <original> <protected>: the same speaker or another (ordered pairs)
      trial2/trials  <segment> <segment>, both protected in one profile or both original (pairs
                     once)
      cross/trials   <segment>-p1 <segment>-p1 target, <segment>-p1 <segment>-p2 nontarget, of one
                     speaker; cross/utt2spk has their speakers

    No segment is compared with itself. The numbers of trials are printed.
    """
    from local.protocols.studies import PROFILES, make_segment_lists
    from utils.trials import write_trials

    need = ("utt2spk", "spk2gender") if same_gender else ("utt2spk",)
    data = load_data_dir(data_dir, need=need, not_speakers_of=training)
    tables = [None if path is None else read_map(path) for path in (sessions, durations)]
    lists = make_segment_lists(data.utt2spk, data.spk2gender if same_gender else None, *tables)
    profiled = {f"{utt}-{p}": spk for utt, spk in data.utt2spk.items() for p in PROFILES}
    write_map(out / "cross/utt2spk", profiled)
    print(f"{data_dir}: {len(data.spk2utt)} speakers, {len(data.utt2spk)} segments")
    for name, trials in lists.items():
        write_trials(out / name / "trials", trials)
        n_target = int(trials.target.sum())
        print(f"  {name:<6}  {n_target} target, {len(trials) - n_target} nontarget trials")


main = commands(_segments, _trials)
