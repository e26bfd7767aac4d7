"""The report: summary, tables by evaluator, and where every figure came from."""

from collections.abc import Mapping, Sequence

from local.report import doubts, evidence, strongest, tables, verdict
from local.report.front import trades
from local.report.recognisers import opinions
from local.report.results import Figure, SpeakerFigure, Timing
from local.report.words import UTILITY, absent, attacker, enumerate_words, plain

READING = """\
Values in brackets: 95 % interval by resampling speakers. **EER**: equal error rate of the attacker,
the share of true matches missed where as large a share of others is taken for a match, linear
between points of the ROC; 50 % is a coin toss, and a higher value means that scores are reversed.
**DeID**: share of the voices' self-similarity that is gone, as heard by an attacker who compares
with the original voices; one who knows of the protection may find more (100 % is best). **G_VD**:
gain of voice distinctiveness (0 dB: protected voices differ as much as original ones). **D_ECE**:
expected disclosure, from 0 (none) to 0.721 bit. **l_w**: worst-case evidence (decimal logarithm),
with its ZEBRA tag. **linkability**: D_sys, from 0 to 1. Attackers: *unprotected* original enrolment
and trials (OO); *ignorant* original enrolment, protected trials (OA); *aligned* the same, after a
rotation learnt on the enrolment speech before and after protection; *lazy-informed* both protected,
with different draws where the system is random (AA); *semi-informed* the same, with an evaluator
trained on protected speech, and *white-box* on speech of the very target voice: from scratch,
*(fine-tuned)*, or only its *(back end)*. Attack figures come from the enrolment-trial lists; DeID
and G_VD from all pairs of trial segments.
"""


SECTIONS = (
    ("Summary", tables.summary_table),
    ("Attacks on the enrolment-trial lists", tables.attack_table),
    ("Re-identification: who of the enrolled speakers is it?", tables.reid_table),
    ("Voice similarity, all pairs of trial segments", tables.similarity_table),
    (
        "Voice similarity, as heard by evaluators trained on protected speech (VoicePAT's G_VD)",
        tables.informed_similarity_table,
    ),
    (tables.GAINS_TITLE, tables.gains_table),
    ("Identity leakage in embedding space, protected to original segments", tables.leakage_table),
    (
        "Calibration by an ignorant attacker who has another protected run "
        "(not defined for a deterministic system)",
        tables.calibration_table,
    ),
    ("Legal criteria: singling out and linkability (not D_sys)", tables.legal_table),
)


def render(
    figures: Sequence[Figure],
    corpus: str,
    origin: Mapping[str, str],
    notes: Sequence[tuple[str, str]] = (),
    timings: Sequence[Timing] = (),
    speakers: Sequence[SpeakerFigure] = (),
) -> str:
    """The whole report in Markdown. `origin`: lines of the provenance block, name to value; notes:
    what systems say of themselves; timings: real-time factors; speakers: figures by person."""
    privacy = [f for f in figures if f.attacker != UTILITY]
    parts = [f"# Results on {plain(corpus)}", READING]
    if notes:
        parts.append("\n".join(f"- **{plain(system)}**: {plain(note)}" for system, note in notes))
    if (table := evidence.verdict_table(figures, speakers)).rows:
        trusted, rules = (
            "\n".join(f"- {plain(text)}" for text in texts)
            for texts in (evidence.trust(figures), verdict.RULES)
        )
        parts.append(f"## {evidence.TITLE}\n\n{table.markdown()}\n\n{trusted}")
        if steps := evidence.what_now(figures):
            now = "\n".join(f"- {s.why}: `{s.command}` ({s.time})." for s in steps)
            parts.append(f"What now:\n\n{now}")
        parts.append(f"How a verdict is made:\n\n{rules}")
    if warnings := doubts.doubts(figures):
        parts.append(
            f"## {doubts.TITLE}\n\n" + "\n".join(f"- 🔴 **{plain(text)}**" for text in warnings)
        )
    best = strongest.strongest_table(figures)
    if best.rows:
        parts.append(f"## {strongest.TITLE}\n\n{best.markdown()}\n\n{strongest.READING}")
    for evaluator in dict.fromkeys(f.evaluator for f in privacy):
        own = tables.group(f for f in privacy if f.evaluator == evaluator)
        parts.append(f"## Evaluator {plain(evaluator)}")
        parts += [f"### {title}\n\n{table(own).markdown()}" for title, table in SECTIONS]
    useful = tables.utility_table(figures)
    if useful.rows:
        said = [trade.finding() for trade in trades(figures) if trade.points]
        fronts = "".join(f"- {plain(text)}\n" for text in (*opinions(figures), *said))
        parts.append(f"## Utility\n\n{fronts}\n{useful.markdown()}")
        parts += filter(None, [tables.utility_reading(figures)])
    prosody = tables.prosody_table(figures)
    if prosody.rows:
        parts.append(f"## {tables.PROSODY_TITLE}\n\n{prosody.markdown()}")
    timed = tables.rtf_table(timings)
    if timed.rows:
        parts.append(f"## {tables.RTF_TITLE}\n\n{timed.markdown()}\n\n{tables.RTF_READING}")
    parts += [
        f"## Not measured\n\n{_not_measured(privacy, bool(useful.rows), bool(timed.rows))}",
        "## Origin\n\n" + "\n".join(f"- {name}: {plain(value)}" for name, value in origin.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _not_measured(privacy: Sequence[Figure], has_utility: bool, has_times: bool) -> str:
    said = [] if has_utility else ["Utility (word error rate, emotion, quality)."]
    if not has_times:
        said.append("Real-time factors.")
    missing = absent({f.attacker for f in privacy})
    if missing:
        said.append(f"No {enumerate_words([attacker(name) for name in missing])} attacker.")
    return " ".join(said) or "Nothing of what this project measures."
