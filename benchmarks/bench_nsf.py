#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Speed of conversion by the neural source-filter: the network of nsf_mini.yaml, on one core.

Goal: a real-time factor of at most 0.02, everything included: F0 (DIO and StoneMask), envelope,
content, network, synthesis. The weights are random, which changes nothing in the time. Process CPU
time, best of several. Speech: LibriSpeech from $PSEUDOVOX_CORPORA or ../shared/corpora, else
synthetic.
"""

import sys
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.measuring import MOST, ROOT, cpu_seconds, judge, load_speech
from steps.synthesis.base import Target
from steps.synthesis.content import analyse_content, extract_content
from steps.synthesis.f0 import compute_f0_stats
from steps.synthesis.trained import NsfConfig, NsfNetwork, NsfSynthesiser
from steps.synthesis.world import extract_f0
from steps.training.settings import read_config
from utils.arrays import Float64

GOAL, RUNS, N_FILES, N_XVECTOR = 0.02, 5, 12, 256
CONF = ROOT / "egs/TEMPLATE/conf/synthesisers/nsf_mini.yaml"


def main() -> int:
    """Measure, print figures, and say by the exit status whether the goal was met."""
    config = read_config(NsfConfig, CONF)
    network = NsfNetwork(config.network, config.cepstra, N_XVECTOR)
    synthesiser = NsfSynthesiser(config, network)
    xvector = np.random.default_rng(0).standard_normal(N_XVECTOR)
    target = Target(xvector, ("x",), np.ones(1), compute_f0_stats([np.full(9, 150.0)]))
    name, waves = load_speech(N_FILES)
    seconds = sum(map(len, waves)) / 16000
    parts: dict[str, Callable[[Float64], object]] = {
        "F0": extract_f0,
        "F0 and content": lambda w: extract_content(analyse_content(w)[1], config.cepstra),
        "conversion": lambda w: synthesiser.convert(w, target, lambda f0: f0),
    }
    millions = sum(p.numel() for p in network.parameters()) / 1e6
    print(f"speech: {len(waves)} files of {name}, {seconds:.1f} s; {millions:.2f} M parameters")
    factors = {
        part: cpu_seconds(partial(lambda f: [*map(f, waves)], f), RUNS) / seconds
        for part, f in parts.items()
    }
    for part, factor in factors.items():
        print(f"{part}: real-time factor {factor:.5f}")
    return judge(("real-time factor of conversion", factors["conversion"], MOST, GOAL))


if __name__ == "__main__":
    sys.exit(main())
