"""The report: summary, tables by evaluator, and where every figure came from."""

from collections.abc import Mapping, Sequence

from local.report.results import Figure
from local.report.tables import attack_table, group, similarity_table, summary_table

READING = """\
Values in brackets: 95 % interval by resampling speakers. **EER**: equal error rate of the
attacker, linear between points of the ROC; 50 % is a coin toss, and a higher value means that
scores are reversed. **DeID**: share of the voices' self-similarity that is gone between original
and protected speech (100 % is best). **G_VD**: gain of voice distinctiveness (0 dB: protected
voices differ as much as original ones). **D_ECE**: expected disclosure, from 0 (none) to 0.721
bit. **l_w**: worst-case evidence (decimal logarithm), with its ZEBRA tag. **linkability**: D_sys,
from 0 to 1. Attackers: *unprotected* original enrolment and trials (OO); *ignorant* original
enrolment, protected trials (OA); *lazy-informed* both protected, with different draws where the
system is random (AA). Attack figures come from the enrolment-trial lists; DeID and G_VD from all
pairs of trial segments. No attacker here was trained on protected speech: a semi-informed one
would do better.
"""


def render(figures: Sequence[Figure], corpus: str, origin: Mapping[str, str]) -> str:
    """The whole report in Markdown. `origin`: lines of the provenance block, name to value."""
    parts = [f"# Results on {corpus}", READING]
    for evaluator in dict.fromkeys(f.evaluator for f in figures):
        own = group(f for f in figures if f.evaluator == evaluator)
        parts += [
            f"## Evaluator {evaluator}",
            "### Summary\n\n" + summary_table(own),
            "### Attacks on the enrolment-trial lists\n\n" + attack_table(own),
            "### Voice similarity, all pairs of trial segments\n\n" + similarity_table(own),
        ]
    parts += [
        "## Not measured",
        "Utility (word error rate, emotion); attackers trained on protected speech.",
        "## Origin\n\n" + "\n".join(f"- {name}: {value}" for name, value in origin.items()),
    ]
    return "\n\n".join(parts) + "\n"
