"""Words: normalisation, PocketSphinx, decoding that goes on, word error rate."""

import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.compute_utility import main as compute
from local.metrics.utility import align, error_figures, kaldi_line
from steps.asr.language import normalise, normalise_english
from steps.asr.recognisers import JOURNAL, decode_all, make_recogniser
from steps.decode import main as decode
from tests.recipes import ROOT, link_recipe, run_recipe
from tests.refusals import accepts, refuses, refuses_words
from utils.arrays import Float64
from utils.tables import read_map, write_file

WORDS = st.lists(st.sampled_from("abcd"), max_size=8)


@pytest.mark.parametrize(
    ("said", "written", "words"),
    [
        ("YES SIR", "Yes, sir!", "yes sir"),
        ("TWENTY FIVE DOLLARS AND FIFTY CENTS", "$25.50", "$25.50"),
        ("EIGHTEEN SIXTY ONE", "1861", "1861"),
        ("THE THIRTY FIRST", "the 31st", "the 31st"),
        ("THREE THOUSAND FIVE HUNDRED", "3,500", "3500"),
        ("FIFTY PER CENT", "50%", "50%"),
        ("IT IS WHAT HE DOES NOT SAY", "It’s what he doesn't say.", "it is what he does not say"),
        ("MISTER GRAY'S COLOR", "Mr. Grey's colour", "mister gray is color"),
        ("WELL KNOWN UM BOYS", "Well-known <noise> boys'", "well known boys"),
        ("A B", "A(2) ++UH++ b [COUGH]", "a b"),
        ("", " -- ", ""),
    ],
)  # fmt: skip
def test_english_in_one_spelling(said: str, written: str, words: str) -> None:
    assert normalise_english(said) == normalise_english(written) == words.split()


def test_an_acute_accent_for_an_apostrophe_parted_words() -> None:
    assert normalise("geht´s") == ["GEHT'S"]
    assert normalise_english("it´s") == normalise_english("it's") == ["it", "is"]


def test_a_wrong_digit_made_the_whole_number_wrong() -> None:
    said, heard = {"a": "ONE FIVE TWO ONE SEVEN"}, {"a": "15287"}
    assert error_figures(said, heard, {"a": "1"})["wer"] == 1
    assert error_figures(said, heard, {"a": "1"}, normaliser="english_digits")["wer"] == 0.2


@pytest.mark.parametrize(
    ("spelling", "said", "written", "errors"),
    [
        ("vpc2024", "IT'S WELL KNOWN", "it's well-known", 2),  # M6: parted at blanks alone
        ("vpc2024", "MISTER GRAY", "Mister Gray.", 1),
        ("vpc2026", "là bas n'est-ce pas", "Là-bas, n'estce pas ?", 2),  # M4: a hyphen joins
        ("vpc2026", "«dix» [bruit] (rire)", "dix bruit rire", 0),
        ("vpc2026", "“dix”", "dix", 1),  # typographic quotes stay
        ("vpc2026", "深 shen1 交 jiao1", "深所", 1),  # Chinese by character
    ],
)  # fmt: skip
def test_words_are_compared_as_the_challenges_compare_them(spelling, said, written, errors):
    found = error_figures({"a": said}, {"a": written}, {"a": "1"}, normaliser=spelling)
    total = sum(found[f"n_{n}"] for n in ("substitutions", "insertions", "deletions"))  # type: ignore[misc]
    assert total == errors


def test_the_spelling_of_a_challenge_was_said_to_be_whispers() -> None:
    found = error_figures({"a": "A."}, {"a": "A"}, {"a": "1"}, normaliser="vpc2024")
    assert found["normalisation"] == "vpc2024"


def levenshtein(a: list[str], b: list[str]) -> int:
    """The textbook recursion."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


@given(WORDS, WORDS)
def test_alignment_against_the_textbook(reference: list[str], hypothesis: list[str]) -> None:
    substitutions, insertions, deletions = align(reference, hypothesis)
    total = substitutions + insertions + deletions
    assert total == levenshtein(reference, hypothesis)
    assert len(reference) - deletions + insertions == len(hypothesis)


def test_wer_by_hand() -> None:
    reference = {"a": "the cat sat", "b": "on the mat", "c": "yes"}
    hypothesis = {"a": "the bat sat down", "b": "on mat", "c": "yes"}  # 1 sub 1 ins; 1 del; right
    utt2spk = {"a": "1", "b": "2", "c": "2"}
    found = error_figures(reference, hypothesis, utt2spk, n_bootstrap=100)
    assert found["wer"] == pytest.approx(3 / 7)
    parts = [found[f"wer_{n}"] for n in ("substitutions", "insertions", "deletions")]
    assert parts == pytest.approx([1 / 7] * 3)
    # the cat sat: b for c, and 5 more; on the mat: 4 fewer, of 11 + 10 + 3 letters and blanks
    assert (found["n_characters"], found["cer"]) == (24, pytest.approx(10 / 24))
    # A resample is speaker 1 twice (2 of 3), 2 twice (1 of 4), or both.
    assert found["intervals"]["wer"] == pytest.approx([1 / 4, 2 / 3])  # type: ignore[index]
    turned = {u: hypothesis[u] for u in reversed(hypothesis)}
    assert error_figures(reference, turned, utt2spk, n_bootstrap=100) == found


def test_the_line_is_that_of_kaldi() -> None:
    # compute-wer on LibriSpeech test-clean, a triphone model; as published with a Kaldi tutorial.
    counts = {
        "n_words": 52576, "n_insertions": 692, "n_deletions": 314, "n_substitutions": 3103,
    }  # fmt: skip
    assert kaldi_line(counts) == "%WER 7.82 [ 4109 / 52576, 692 ins, 314 del, 3103 sub ]"


def test_nothing_said_and_nothing_heard(caplog: pytest.LogCaptureFixture) -> None:
    empty = error_figures({"a": "one two"}, {"a": ""}, {"a": "1"})
    assert (empty["wer"], empty["wer_deletions"], empty["n_empty_hypotheses"]) == (1, 1, 1)
    assert "every hypothesis is empty" in caplog.text
    caplog.clear()
    more = error_figures({"a": "one", "b": ""}, {"a": "one", "b": "x y z"}, {"a": "1", "b": "1"})
    assert more["wer"] == 3
    assert not caplog.text
    none = error_figures({"a": ""}, {"a": "x"}, {"a": "1"})
    assert math.isnan(none["wer"])  # type: ignore[arg-type]
    assert "wer is undefined: the reference has no word" in caplog.text


def test_the_interval_of_one_speaker_had_no_width(caplog) -> None:  # type: ignore[no-untyped-def]
    said, heard = {"a": "red blue", "b": "green"}, {"a": "red", "b": "green"}
    alone, both = (error_figures(said, heard, {"a": "1", "b": b}, n_bootstrap=50) for b in "12")
    assert alone["intervals"]["wer"] is None and "there is one" in caplog.text  # type: ignore[index]
    assert both["intervals"]["wer"] == [0, 0.5]  # type: ignore[index]


def test_the_spelling_of_2026_was_called_wrong_for_its_languages(caplog) -> None:  # type: ignore[no-untyped-def]
    for text, words in (("我们今天去学校 iPhone", 7), ("я иду домой", 3)):
        found = error_figures({"a": text}, {"a": text}, {"a": "1"}, normaliser="vpc2026")
        assert (found["n_words"], caplog.text) == (words, "")
    error_figures({"a": "今天去"}, {"a": "今天去"}, {"a": "1"}, normaliser="plain")
    assert "read cer, not wer" in caplog.text


class StandIn:
    """Hears how long an utterance is; fails at the `dies_at`th."""

    def __init__(self, dies_at: int = 99, name: str = "stand-in") -> None:
        self.settings = {"recogniser": name}
        self.heard: list[str] = []
        self.dies_at = dies_at

    def recognise(self, utt: str, samples: Float64) -> str:
        if len(self.heard) == self.dies_at:
            raise KeyboardInterrupt
        self.heard.append(utt)
        return f"{len(samples)} samples."


def test_a_killed_decoding_goes_on(tmp_path: Path, make_data_dir) -> None:  # type: ignore[no-untyped-def]
    wav = read_map(make_data_dir(tmp_path / "d") / "wav.scp")
    with pytest.raises(KeyboardInterrupt):
        decode_all(StandIn(dies_at=3), wav, tmp_path / "out", iter)
    assert not (tmp_path / "out/text").exists()
    with (tmp_path / "out" / JOURNAL).open("a") as stream:
        stream.write("s2-001 0123 torn")  # killed while it wrote
    again = StandIn()
    assert decode_all(again, wav, tmp_path / "out", iter)[0] == 3
    assert again.heard == ["s2-001", "s2-002"]
    whole = tmp_path / "whole"
    decode_all(StandIn(), wav, whole, iter)
    assert (tmp_path / "out/text").read_text() == (whole / "text").read_text()
    assert (whole / "text").read_text().startswith("s1-000 1600 samples.\n")
    assert sorted(path.name for path in whole.iterdir()) == ["recogniser.json", "text"]
    # Another recogniser, or other audio, is heard anew.
    refuses("^$", decode_all, StandIn(dies_at=3), wav, whole, iter, kind=KeyboardInterrupt)
    assert decode_all(StandIn(name="other"), wav, whole, iter)[0] == 0


def test_characters_without_width_parted_what_was_heard(tmp_path, make_data_dir, monkeypatch):
    said, wav = "می\u200cخواهم", read_map(make_data_dir(tmp_path / "d") / "wav.scp")
    monkeypatch.setattr(StandIn, "recognise", lambda *_: f"{said}\x00\u2028{said}\n")
    decode_all(StandIn(), wav, tmp_path, iter)
    heard = read_map(tmp_path / "text", rest_of_line=True)["s1-000"]
    assert normalise(heard) == 2 * normalise(said)
    assert normalise_english("\ufeffco\xadlour") == ["color"]


def test_silence_is_nothing() -> None:
    recogniser = make_recogniser("pocketsphinx")
    assert recogniser.recognise("a", np.zeros(8000)) == ""
    recogniser.recognise("b", np.full(10, 0.1))  # shorter than a frame


def test_bad_inputs(tmp_path: Path, make_data_dir) -> None:  # type: ignore[no-untyped-def]
    """Of an output beside its data tests/test_emotion.py has more."""
    data, out = make_data_dir(tmp_path / "d"), tmp_path / "out"
    known = "kaldi: no recogniser; known: moonshine, whisper, pocketsphinx"
    refuses_words(known, decode, "kaldi", data, out)
    (data / "text").unlink()
    refuses_words("text: is missing", compute, "words", data, tmp_path / "heard", out)
    assert not out.exists()


def test_runaway_hypotheses_were_counted_nowhere_but_in_a_log(tmp_path, make_data_dir, capsys):
    data, out = make_data_dir(tmp_path / "d"), tmp_path / "metrics.json"
    heard = tmp_path / "heard"
    write_file(heard / "text", (data / "text").read_text())
    (heard / "recogniser.json").write_text("{}")
    (heard / "notes.txt").write_text("s1-001 a phrase 9 times over, cut to one\n")
    accepts(compute, "words", data, heard / "text", out)
    figures = json.loads(out.read_text())
    assert figures["n_hypotheses_cut"] == 1
    assert figures["hypotheses_cut"] == 1 / figures["n_segments"]
    assert "s1-001" in capsys.readouterr().err


@pytest.mark.slow
def test_the_recipe_measures_it(tmp_path: Path, make_data_dir) -> None:  # type: ignore[no-untyped-def]
    """Stage 10 on original speech: figures, and nothing done twice."""
    folder = tmp_path / "egs"
    make_data_dir(folder / "data/x_trials_f", {"s1": 2, "s2": 2})
    conf = "corpus_name=x\nevaluation=x\ngenders=f\nasr=pocketsphinx\nnj=2\n"
    link_recipe(folder, conf)
    (folder / "conf/encoders").symlink_to(ROOT / "egs/TEMPLATE/conf/encoders")
    stage_10 = partial(run_recipe, folder, "--stage", "10", "--stop-stage", "10", "--systems=")
    stage_10("--bootstrap", "10")
    made = folder / "exp/metrics/original/utility.pocketsphinx/OO/x_f"
    found = json.loads((made / "metrics.json").read_text())
    assert (found["n_segments"], found["n_speakers"], found["n_words"]) == (4, 2, 20)
    assert "%WER " in (made / "log/compute_utility.log").read_text()
    assert "nothing to do: all 2 steps" in stage_10("--bootstrap", "10").stdout
    # Moonshine, in two jobs: what each wrote is put together, and is what one would have written.
    stage_10("--bootstrap", "10", "--asr", "moonshine")
    made, heard = made.parents[2] / "utility.moonshine", folder / "exp/decode/original/moonshine"
    told = json.loads((made / "OO/x_f/metrics.json").read_text())
    assert told["normalisation"].startswith("english: whisper_normalizer")
    assert len((heard / "x_trials_f/seconds.tsv").read_text().splitlines()) == 1 + 4
    accepts(decode, "moonshine", folder / "data/x_trials_f", tmp_path / "one")
    for name in ("text", "recogniser.json"):
        assert (tmp_path / "one" / name).read_bytes() == (heard / "x_trials_f" / name).read_bytes()


HUB_MODEL = """
tokenizer: !apply:tests.test_asr.hub_tokenizer
decoding_function: !name:speechbrain.decoders.ctc_greedy_decode {blank_id: 0}
encoder: !new:speechbrain.nnet.containers.LengthsCapableSequential
  features: !new:speechbrain.lobes.features.Fbank {n_mels: 20}
  linear: !new:speechbrain.nnet.linear.Linear {input_size: 20, n_neurons: 4}
  soft: !new:speechbrain.nnet.activations.Softmax {apply_log: true}
modules: {encoder: !ref <encoder>}
pretrainer: !new:speechbrain.utils.parameter_transfer.Pretrainer
"""


def hub_tokenizer() -> object:
    """The tokenizer of the model above: a blank and three letters."""
    from speechbrain.dataio.encoder import CTCTextEncoder

    encoder = CTCTextEncoder()
    encoder.insert_blank(index=0)
    encoder.update_from_iterable(["a", "b", " "], sequence_input=False)
    return encoder


def test_a_model_of_the_hub_that_is_here(tmp_path: Path, make_data_dir) -> None:  # type: ignore[no-untyped-def]
    folder, data = tmp_path / "model", make_data_dir(tmp_path / "d")
    write_file(folder / "hyperparams.yaml", HUB_MODEL)
    accepts(decode, f"hub:{folder}", data, tmp_path / "out")
    found = read_map(tmp_path / "out/text", rest_of_line=True)
    assert found.keys() == read_map(data / "utt2spk").keys()
    assert set("".join(found.values())) <= set("ab ")
    told = json.loads((tmp_path / "out/recogniser.json").read_text())
    assert told["interface"] == "EncoderASR"
    end = (f"hub:{folder}", data, tmp_path / "out2")
    refuses_words("takes no --model", decode, "--model", folder, *end)
    pretrainer = HUB_MODEL.splitlines()[-1]
    (folder / "hyperparams.yaml").write_text(f"{pretrainer}\nmodules: {{}}\n")
    refuses_words(r"cannot be loaded \(ValueError: Need hparams", decode, *end)
