"""Models of transformers that hear words and emotions, made on the spot."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from local.metrics.detection import eer_speechbrain
from steps.asr.recognisers import make_recogniser
from steps.audio import write_wav
from steps.decode import main as decode
from steps.emotion.hub import HubEmotions
from steps.recognise_emotion import main as recognise_emotion
from tests.refusals import accepts, refuses
from utils.seeds import make_rng
from utils.tables import read_map

SPECIAL = (
    "endoftext", "startoftranscript", "en", "de", "translate", "transcribe", "startoflm",
    "startofprev", "nospeech", "notimestamps",
)  # fmt: skip


def make_whisper(folder: Path, *, multilingual: bool = True) -> Path:
    """One layer, which writes letters; not trained."""
    import transformers as tf

    vocabulary = {word: n for n, word in enumerate([*"abcdefghijklmnopqrstuvwxyzĠ"])}
    vocabulary |= {f"<|{word}|>": n for n, word in enumerate(SPECIAL, len(vocabulary))}
    tokens = {word: vocabulary[f"<|{word}|>"] for word in SPECIAL}
    tokenizer = tf.WhisperTokenizer(vocab=vocabulary, merges=[])
    tokenizer.add_tokens([f"<|{word}|>" for word in SPECIAL], special_tokens=True)
    end = {f"{name}_token_id": tokens["endoftext"] for name in ("pad", "bos", "eos")}
    end["decoder_start_token_id"] = tokens["startoftranscript"]
    torch.manual_seed(0)
    model = tf.WhisperForConditionalGeneration(
        tf.WhisperConfig(
            vocab_size=len(vocabulary) + 1501, d_model=16, encoder_layers=1, decoder_layers=1,
            encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16,
            decoder_ffn_dim=16, max_target_positions=24, **end,
        )
    )  # fmt: skip
    more = {
        "lang_to_id": {"<|en|>": tokens["en"], "<|de|>": tokens["de"]},
        "task_to_id": {name: tokens[name] for name in ("transcribe", "translate")},
    }
    model.generation_config = tf.GenerationConfig(
        is_multilingual=multilingual, no_timestamps_token_id=tokens["notimestamps"],
        max_length=20, **(more if multilingual else {}), **end,
    )  # fmt: skip
    model.save_pretrained(folder)
    extractor = tf.WhisperFeatureExtractor(feature_size=80)
    tf.WhisperProcessor(extractor, tokenizer).save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_whisper_writes_the_language_that_it_is_told(tmp_path, make_data_dir, monkeypatch):
    folder, data = make_whisper(tmp_path / "model"), make_data_dir(tmp_path / "d")
    accepts(decode, "--language", "de", f"hub:{folder}", data, tmp_path / "out")
    found = read_map(tmp_path / "out/text", rest_of_line=True)
    assert found.keys() == read_map(data / "utt2spk").keys() and "<|" not in "".join(found.values())
    told = json.loads((tmp_path / "out/recogniser.json").read_text())
    assert (told["interface"], told["language"]) == ("Whisper", "de")
    german = make_recogniser(f"hub:{folder}", language="de")
    prompts = []
    plain = german._model.generate  # type: ignore[attr-defined]

    def generate(**told: object) -> torch.Tensor:
        prompts.append((told["language"], told["task"], tuple(told["input_features"].shape)))  # type: ignore[attr-defined]
        return plain(**told)

    monkeypatch.setattr(german._model, "generate", generate)  # type: ignore[attr-defined]
    noise = 0.1 * np.random.default_rng(0).standard_normal(16000 * 31)
    assert german.recognise("a", noise[:16000]) == german.recognise("a", noise[:16000])
    assert isinstance(german.recognise("a", noise), str)  # of more than a window
    assert prompts[0] == ("de", "transcribe", (1, 80, 3000))
    assert prompts[-1] == ("de", "transcribe", (1, 80, 3100))
    refuses("--language fr: the model knows de en", make_recogniser, f"hub:{folder}", language="fr")
    assert make_recogniser(f"hub:{folder}").settings["language"] == "as the model guesses"


@pytest.mark.slow
def test_whisper_of_english_alone(tmp_path):
    folder = make_whisper(tmp_path / "model", multilingual=False)
    english = make_recogniser(f"hub:{folder}", language="en")
    assert isinstance(english.recognise("a", np.ones(8000)), str)
    refuses("the model knows English alone", make_recogniser, f"hub:{folder}", language="de")


@pytest.mark.slow
def test_emotions_by_a_classifier_of_transformers(tmp_path, make_data_dir):
    import transformers as tf

    folder, data = tmp_path / "model", make_data_dir(tmp_path / "d")
    names = {0: "neu", 1: "hap", 2: "ang", 3: "sad"}
    tf.Wav2Vec2ForSequenceClassification(
        tf.Wav2Vec2Config(
            hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, conv_dim=[8] * 7,
            classifier_proj_size=8, id2label=names, label2id={v: k for k, v in names.items()},
        )
    ).save_pretrained(folder)  # fmt: skip
    tf.Wav2Vec2FeatureExtractor().save_pretrained(folder)
    accepts(recognise_emotion, f"hub:{folder}", data, tmp_path / "out")
    header, *rows = (tmp_path / "out/posteriors.tsv").read_text().splitlines()
    assert header == "#utt\tanger\thappiness\tneutral\tsadness"
    assert all(sum(map(float, row.split()[1:])) == pytest.approx(1, abs=1e-5) for row in rows)
    assert len(rows) == len(read_map(data / "utt2spk"))
    utt, path = next(iter(read_map(data / "wav.scp").items()))
    write_wav(path, np.ones(300) / 2)  # fewer samples than its layers need
    command = [f"hub:{folder}", str(data), str(tmp_path / "out")]
    refuses(f"{utt}: 300 samples: the model fails: ", recognise_emotion, command)


def test_emotion2vec_is_of_another_toolkit():
    said = r"read by FunASR, not here; .*local/compute_utility\.py emotions"
    refuses(said, HubEmotions, "emotion2vec/emotion2vec_plus_large")


@pytest.mark.slow
def test_a_hub_that_cannot_be_reached_is_one_line(tmp_path, make_data_dir, run_process):
    words = ("hub:nobody/no-such-model", make_data_dir(tmp_path / "d"), tmp_path / "out")
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}
    done = run_process("steps/decode.py", *words, **offline, status=2)
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("decode.py: hub:nobody/no-such-model: cannot be loaded (")
    assert "it needs a network, an earlier download, or a folder" in last
    assert not (tmp_path / "out").exists()


def test_W11_the_error_rate_of_speechbrain_is_its_own():
    """On scores with ties; Hypothesis cannot look at SpeechBrain's modules."""
    from speechbrain.utils.metric_stats import EER

    rng = make_rng(0, "eer")
    for _ in range(300):
        score = np.round(rng.normal(size=int(rng.integers(2, 20))), int(rng.integers(0, 3)))
        target = np.arange(len(score)) < rng.integers(1, len(score))
        theirs, _ = EER(*(torch.tensor(score[of], dtype=torch.float32) for of in (target, ~target)))
        assert eer_speechbrain(score, target) == pytest.approx(theirs, abs=1e-7)
        assert eer_speechbrain(4 * score, target) == eer_speechbrain(score, target)
