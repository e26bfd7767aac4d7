"""The plan of a recipe: what is checked, planned, shown; and that run.sh makes all of it."""

import fcntl
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from local.plan import needs
from local.plan.evaluators import check_trainings, find_evaluators, train_instead
from local.plan.labels import Labels, write_labels
from local.plan.needs import Recipe
from local.plan.options import Asked, follow_protocol
from local.plan.run import FILE, plan_run, what_counts
from local.plan.studies import STUDIES
from tests.plans import CASES, KEPT, draw, make_corpus, make_set, make_settings, plan_case
from tests.recipes import ROOT, TEMPLATE, commands, link_recipe, options_of, run_recipe
from tests.refusals import refuses
from utils import stamps
from utils.recipe import Planned, Tables
from utils.settings import list_settings, read_settings
from utils.tables import write_file, write_json

Plan = Callable[..., Planned]
REFUSED = yaml.safe_load(Path(__file__).with_name("bad_options.yaml").read_text())


@pytest.fixture
def corpus(here: Path) -> Iterator[Path]:
    """A corpus's folder with the project's settings and encoder `e`, whose sets are there."""
    make_settings(here)
    for name in ("train", "e_enrolls", "e_trials_f", "e_trials_m"):
        (here / "data" / name).mkdir(parents=True)
    yield here


@pytest.fixture
def plan(corpus: Path) -> Plan:
    def with_options(**options: str) -> Planned:
        defaults = options_of(TEMPLATE / "run.sh") | {"evaluators": "e/plda e/cosine"}
        return plan_run(Asked(defaults | options))

    return with_options


def refused(message: str, plan: Plan, **options: str) -> None:
    refuses(re.escape(message), plan, **options)


def test_what_is_wrong_is_said_before_anything_is_made(plan: Plan, corpus: Path) -> None:
    """Two processes wrote one folder where something was named twice."""
    (corpus / "data/e_trials_f/utt2spk").touch()
    for options, message in REFUSED["run"]:
        refused(message, plan, **options)


def test_a_model_of_words_and_of_emotions_was_planned_twice(plan: Plan) -> None:
    """Figures of both would lie in one folder; the next run, of the other, shows its own."""
    said = "--emotion hub:m: --asr also names it; a model recognises words or emotions"
    refused(said, plan, asr="hub:x hub:m", emotion="functionals hub:m")
    remember(asr="hub:m")
    later = plan(emotion="hub:m")
    assert "exp/metrics/b2/utility.hub:m/PP/e" in commands(later)
    assert f"not in the report: what earlier runs measured: {said}" in "; ".join(later.notes)


def test_an_attacker_whom_no_evaluator_can_be_was_left_out_in_silence(plan: Plan) -> None:
    def named(attackers: str, **options: str) -> Planned:
        asked = {"systems": "b2r", "attackers": attackers, "given": "attackers"}
        return plan(**{**asked, **options})

    target = "white_box on b2r with e/plda: only systems of level const have a target to know"
    refused(f"--attackers: {target} (--systems const_01)", named, attackers="ignorant white_box")
    trained = {"attackers": "semi_informed_backend", "evaluators": "e/cosine"}
    refused("cosine has nothing to train; --evaluators e/plda or e/plda_asnorm", named, **trained)
    some = named("semi_informed_backend")
    assert not some.lacking
    both = named("semi_informed_backend", systems="b2 b2r").notes  # a line for each system
    assert sum("skipped: semi_informed_backend on b2, b2r with e/cosine: " in n for n in both) == 1
    assert any("skipped: semi_informed_backend on b2r with e/cosine" in note for note in some.notes)
    (one,) = named("ignorant white_box", systems="b2r const_01").lacking
    assert target in one
    assert not plan(attackers="white_box", systems="b2r").lacking  # not of this command


def test_attackers_whom_nobody_could_be_fused_with_were_left_out_in_silence(plan: Plan) -> None:
    few = {"systems": "b2r", "evaluators": "e/plda e/cosine level/gaussian fused_learnt"}
    for attackers, said in (
        ("semi_informed semi_informed_backend", "attack skipped: semi_informed on b2r with "
         "fused_learnt: e/plda alone makes it"),
        ("ignorant", "nothing is fused learnt: no attack is by two evaluators that it takes"),
    ):  # fmt: skip
        assert [one for one in plan(**few, attackers=attackers).notes if "fused" in one] == [said]


def test_a_dry_run_before_stage_5_counted_one_draw_of_all(plan: Plan) -> None:
    """It foresaw 13 min for a run of 37, in its own measure."""
    options = {"systems": "b2 b2r", "draws": "3", "evaluators": "e/plda"}
    foreseen, first = (plan(**options, dry_run=dry).tables.every_out() for dry in ("true", "false"))
    more = {out for out in {*foreseen} - {*first} if out.startswith("data/")}
    sets = {*(f"data/e_{name}_b2r_draw{n}" for name in ("trials_f", "trials_m") for n in (1, 2))}
    assert more == sets


def test_a_dry_run_of_each_step_was_refused_where_one_of_all_was_not(plan: Plan, corpus: Path):
    draw("e_enrolls_b2r")
    for dry_run in ("true", "full"):
        plan(systems="b2r", stage="9", dry_run=dry_run)


def test_a_dry_run_changed_the_settings_of_speech_of_others(tmp_path: Path) -> None:
    """Figures of the run before were then out of date."""
    folder = link_recipe(tmp_path, "evaluation=e\nevaluators=resemblyzer/cosine\n")
    for name in ("exp/external", "Bär's"):  # a folder that ended in a traceback
        (folder / name).mkdir(parents=True)
    conf, text = folder / "exp/external/theirs.yaml", '{"anonymiser": "external", "folder": "x"}'
    conf.write_text(text)
    options = (
        "--systems=",
        "--external",
        "theirs=Bär's new=Bär's",
        "--dry-run",
        "--stop-stage",
        "5",
    )
    run_recipe(folder, *options)
    assert [path.read_text() for path in conf.parent.iterdir()] == [text]
    with (folder / "exp/.lock").open("w") as held:  # jobs of a run may read them meanwhile
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run_recipe(folder, *options, status=2)
    assert "another run is at work in this folder" in done.stderr


def test_a_mistyped_name_in_recipe_conf_was_ignored(tmp_path: Path) -> None:
    folder = link_recipe(tmp_path, "evaluation=e\nOWN=1\nevalutors=e/plda\n")
    done = run_recipe(folder, "--dry-run", status=2)
    assert done.stderr.startswith("run.sh: conf/recipe.conf: evalutors: no such option; see --help")


def test_a_protocol_overruled_the_options_of_a_config_file(tmp_path: Path) -> None:
    folder = link_recipe(tmp_path, "evaluation=e\nlda_dim=150\n")
    for name in ("protocols", "encoders"):
        (folder / "conf" / name).symlink_to(TEMPLATE / "conf" / name)
    (folder / "my.conf").write_text("lda_dim=77\n")
    options = ("--protocol", "vpc2022", "--systems=", "--dry-run", "full", "--stop-stage", "3")
    assert " --lda-dim 200 " in run_recipe(folder, *options).stdout
    assert " --lda-dim 77 " in run_recipe(folder, *options, "--config", "my.conf").stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("an4", "wav: no such folder"), ("emodb", "wav: no such folder"),
        ("fsdd", "recordings: no such folder"), ("librispeech", "SPEAKERS.TXT is missing"),
        ("mls", "metainfo.txt is missing"), ("speechocean", "train/wav.scp: no such file"),
        ("vctk", "speaker-info.txt is missing"), ("vpc2020", "no such folder"),
        ("TEMPLATE", "no such table of recordings"),
    ],
)  # fmt: skip
def test_a_dry_run_planned_all_steps_with_a_wrong_corpus(tmp_path, name: str, said: str) -> None:
    """It looked at the folder's path alone."""
    folder = link_recipe(tmp_path, "evaluation=e\nevaluators=resemblyzer/cosine\n")
    (folder / "prepare.sh").symlink_to(ROOT / "egs" / name / "prepare.sh")
    others = (("gone", "gone: no such folder"), ("", "--corpus is missing")) * (name == "an4")
    for corpus, what in ((str(tmp_path), said), *others):
        done = run_recipe(folder, "--corpus", corpus, "--systems=", "--dry-run", status=2)
        assert "run.sh: prepare.sh: " in done.stderr and what in done.stderr
        assert not done.stdout
    assert not (folder / "data").exists()


def test_the_training_set_was_made_where_no_step_reads_it(plan: Plan, corpus: Path) -> None:
    """4,160 utterances of egs/synth, a quarter of the default recipe's time."""
    (corpus / "conf/encoders/e.yaml").rename(corpus / "conf/encoders/trained.yaml")
    shipped = {"systems": "b2", "evaluators": "resemblyzer/cosine", "genders": "f"}

    def prepared(**options: str) -> dict[str, str]:
        made = commands(plan(**shipped | options), **shipped | options)
        assert ("data/train" in made) == ("exp/audio/train" in made)
        return {
            out: how.partition(" --seed 0 ")[2] for out, how in made.items() if "prepare" in how
        }

    assert prepared() == {"data/train": ""}  # by a prepare.sh that cannot leave it out
    (corpus / "prepare.sh").write_text('. utils/parse_options.sh\nsets=("$train_set")\n')
    assert prepared() == {"data/train": ""}  # fsdd's was given --sets, which it does not have
    (corpus / "prepare.sh").write_text('sets="evaluation train"\n')
    without = {"data/e_enrolls": "--sets evaluation"}
    assert prepared() == without
    for options in (
        {"evaluators": "resemblyzer/plda"}, {"evaluators": "resemblyzer/cosine_asnorm"},
        {"evaluators": "trained/cosine"}, {"attackers": "semi_informed_finetuned"},
        {"genders": "f m"},  # inference of sex
        {"systems": "b1"}, {"systems": "knnvc"}, {"also_prepared": "train"}, {"stop_stage": "0"},
    ):  # fmt: skip
        assert prepared(**options) == {**without, "data/train": "--sets train"}, options
    assert prepared(attackers="white_box", systems="const_01") != without


@pytest.mark.parametrize("study", [study for study in STUDIES if study in REFUSED])
def test_what_a_study_cannot_be_asked(corpus, study):
    """Figures were wrong where two systems shared a folder, and nothing said so; no pitch ended in
    a division by 0, no bins in the last stage."""
    for name in ("p1", "p2"):
        (corpus / name).mkdir()
    asked = options_of(TEMPLATE / f"{study}.sh") | {"evaluators": "e/plda", "systems": ""}
    for options, message in REFUSED[study]:
        told = asked | options | {"given": " ".join(options)}
        refuses(re.escape(message), STUDIES[study], Asked(told))


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_takes_the_voices_of_a_corpus_s_evaluators(corpus: Path, study: str) -> None:
    """The corpus's own name channels, too, which are for run.sh."""
    asked = options_of(TEMPLATE / f"{study}.sh") | {"systems": "b2"}
    evaluators = "content/cosine e/plda level/distance fused"
    own = {"evaluators": evaluators, "generators": "random", "voice_encoder": "e"}
    planned = STUDIES[study](Asked(asked | own))
    made = planned.tables.every_out()
    assert made and not any(re.search("content|level|fused", out) for out in made)


def test_sets_that_attackers_cannot_learn_from_together(plan: Plan, corpus: Path) -> None:
    make_set(corpus / "data/train", "a b")
    make_set(corpus / "data/dev", "b")
    make_set(corpus / "data/e_trials_f", "t")
    for name, audio in (("x", ""), ("y", "corpus/a.wav")):
        make_set(corpus / f"other/{name}", "c", **({"wav.scp": audio} if audio else {}))
    write_file(corpus / "corpus/a.wav", "")  # one of ours, which was taken for theirs
    (corpus / "data/voices").symlink_to("../other/y")
    make_set(corpus / "other/tested", "c t")
    (corpus / "other/x/spk2gender").unlink()
    for words, why in (
        ("train dev", "data/dev: speaker b (1 in all) is also in data/train; leave out whom"),
        ("train gone", "data/gone: no such data directory"),
        ("../gone/data/train", "../gone/data/train: no such data directory"),
        ("train train", "train is named twice"),
        ("other/x", "other/x/spk2gender is missing"),
        ("train other/y", "other/y/wav.scp: corpus/a.wav: the absolute path of a file is expected"),
        ("train other/tested", "speaker t (1 in all) is also in data/e_trials_f; who is tested"),
    ):
        refused(why, plan, attacker_train=words)
    refused("--pool-set: data/voices/wav.scp: corpus/a.wav: the absolute", plan, pool_set="voices")


@pytest.mark.usefixtures("corpus")
def test_further_trainings_of_an_encoder() -> None:
    """tests/plans/encoders.tsv has their commands, which differ in the seed alone."""
    found = find_evaluators(["e/plda", "e/cosine", "resemblyzer/cosine"], 3)
    assert " ".join(one.title for one in found) == (
        "e/plda e_seed1/plda e_seed2/plda e/cosine e_seed1/cosine e_seed2/cosine resemblyzer/cosine"
    )
    assert " ".join(one.again for one in found) == " e/plda e/plda  e/cosine e/cosine "
    check_trainings(["e/plda", "resemblyzer/cosine"], 2)
    refuses("--trainings: the recipe trains none", check_trainings, ["resemblyzer/cosine"], 2)


def test_defaults_go_without_packages_that_are_not_installed(plan, monkeypatch):
    """The recipe of egs/synth would end with an error where Moonshine's wheel is missing."""
    for gender in "fm":
        Path(f"data/e_trials_{gender}/text").touch()
    options = {"systems": "b2 bn", "asr": "moonshine", "evaluators": "e/plda pyannote/cosine"}
    whole = plan(**options)
    monkeypatch.setattr("local.plan.run.find_spec", lambda _: None)
    less = plan(**options)
    why = "the package moonshine_voice is not installed"
    lacking = ("bn", "pyannote/cosine", "moonshine")
    assert {f"left out: {word}: {why}" for word in lacking} <= {*less.notes}
    assert not [out for out in commands(less) if re.search("bn|pyannote|moonshine", out)]
    named = plan(**options, given="systems evaluators asr")
    assert commands(named).keys() == commands(whole).keys()


def test_an_evaluator_of_models_comes_with_its_back_end(plan, corpus, monkeypatch):
    monkeypatch.setattr("local.plan.evaluators.MODELS", "models")
    monkeypatch.setattr("steps.speaker.kinds.MODELS", corpus / "models")
    (corpus / "models/own/backend").mkdir(parents=True)
    (corpus / "models/own/evaluator.yaml").write_text("encoder: pyannote\n")
    words = "own/plda own/cosine resemblyzer/cosine"
    asked = {"evaluators": words, "attackers": "ignorant semi_informed_backend", "systems": "b2"}
    made = commands(plan(**asked))
    assert "pyannote data/e_enrolls" in made["exp/xvectors/own/e_enrolls"]
    assert not {"exp/backends/own", "exp/xvectors/own/train"} & made.keys()
    scores = made["exp/scores/b2/ignorant.own+plda/OA/e_f"]
    assert "--backend models/own/backend" in scores and "--encoder pyannote" in scores
    assert "--backend cosine" in made["exp/scores/b2/ignorant.own+cosine/OA/e_f"]
    assert "data/train_b2_const" in made["exp/backends/own.train_b2_const"]
    instead = ["ecapa_mini/plda", "ecapa_mini/cosine", "resemblyzer/cosine"]
    assert train_instead(words.split()) == instead
    monkeypatch.setattr("local.plan.run.find_spec", lambda _: None)
    less = plan(**asked)  # without Moonshine's package the recipe trains one
    made = commands(less)
    assert "exp/encoders/ecapa_mini" in made and "exp/xvectors/own/e_enrolls" not in made
    assert "left out: own/plda: the package moonshine_voice is not installed" in less.notes


@pytest.fixture
def theirs(corpus: Path) -> Path:
    """Names end in _x; the enrolment is in another folder, with the second draw."""
    for name, utts in (("e_enrolls", "a"), ("e_trials_f", "b c"), ("e_trials_m", "d"),
                       ("train", "t1 t2")):  # fmt: skip
        lines = "".join(f"{utt} s\n" for utt in utts.split())
        (corpus / "data" / name / "utt2spk").write_text(lines)
    for folder, utts in (("one", "b c d strange"), ("two", "a b c d"), ("train", "t1 t2")):
        for utt in utts.split():
            write_file(corpus / "theirs" / folder / f"{utt}_x.wav", "")
    return corpus / "theirs"


def test_speech_of_others_without_enrolment_has_the_attackers_that_it_can(plan, theirs):
    attackers = "ignorant lazy_informed aligned semi_informed"
    planned = plan(systems="b2", external=f"theirs={theirs}/one", attackers=attackers)
    made = commands(planned)
    assert f"--external {theirs}/one exp/external/theirs.yaml" in made["data/e_trials_f_theirs"]
    assert "data/e_enrolls_theirs" not in made and "data/e_enrolls_b2" in made
    assert "exp/scores/theirs/ignorant.e+plda/OA/e_f" in made
    assert not [out for out in made if "theirs/lazy" in out or "theirs/aligned" in out]
    assert "exp/metrics/b2/gains.e+plda/OO-OA-AA/e_f" in made
    assert not [out for out in made if "theirs/gains" in out]
    told = "\n".join(planned.notes)
    assert "theirs: names end in _x behind the utterance" in told
    assert "1 of 4 files are of no utterance of these sets: strange" in told
    assert "lazy_informed on theirs with e/plda: there is no enrolment speech" in told
    assert "semi_informed on theirs with e/plda: there is no" in told


def followed(evaluators: str = "e/plda", **options: str) -> Planned:
    """The plan of a protocol, with evaluators that are named."""
    named = {"evaluators": evaluators, "given": "evaluators"}
    asked = Asked(options_of(TEMPLATE / "run.sh") | named | options)
    return plan_run(follow_protocol(asked))


def test_W1_the_attack_of_2022_is_run_on_theirs(plan: Plan, theirs: Path) -> None:
    """It was skipped: theirs is not available at level spk, which the protocol set."""
    word = f"theirs={theirs}/one,{theirs}/two,train={theirs}/train"
    planned = followed(protocol="vpc2022", systems="", external=word)
    figures = commands(planned)["exp/metrics/theirs/semi_informed.e+plda/AA/e_f"]
    assert "--challenges" in figures  # W11: error rates as its tools compute them
    assert "exp/scores/theirs/semi_informed.e+plda/AA/e_f" in commands(planned)
    assert not [note for note in planned.notes if "skipped" in note]


def test_W8_the_attacker_of_2026_is_tuned_from_given_weights(plan: Plan, corpus: Path) -> None:
    """Its weights lie in a folder; as they are they are the lazy-informed attacker."""
    given = corpus / "exp/dast"
    given.mkdir(parents=True)
    shutil.copy("conf/encoders/ecapa_wavlm.yaml", given / "encoder.yaml")
    (corpus / "data/e_trials_mixed").mkdir()
    made = commands(followed("exp/dast/cosine_raw", protocol="vpc2026", systems="b2"))
    tuned = made["exp/encoders/dast.train_b2_const.finetuned"]
    unseen = " ".join(f"--not-speakers-of data/e_{s}" for s in ("enrolls", "trials_f", "trials_m"))
    assert f"--init-from exp/dast {unseen} exp/dast/encoder.yaml data/train_b2_const" in tuned
    assert "exp/xvectors/dast/e_enrolls_b2" in " ".join(made)
    for attacker in ("lazy_informed", "semi_informed_finetuned"):
        assert f"exp/scores/b2/{attacker}.dast+cosine_raw/AA/e_mixed" in made


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ("on theirs with e/plda: there is no training set that it protected; --external NAME",
         {"external": "theirs={0}/one,{0}/two"}),
        ("on b2 with resemblyzer/cosine: it comes trained",
         {"systems": "b2", "evaluators": "resemblyzer/cosine"}),
        ("on theirs with e/plda: the system is not available at level spk; --informed-level utt",
         {"external": "theirs={0}/one,{0}/two,train={0}/train", "informed_level": "spk"}),
    ],
)  # fmt: skip
def test_an_attack_that_a_protocol_asks_for_is_not_left_out(plan, theirs, said, options):
    asked = {"systems": "", "evaluators": "e/plda", "attackers": "semi_informed"} | options
    asked["external"] = asked.get("external", "").format(theirs)
    message = f"--protocol vpc2022: cannot run semi_informed {said}"
    refused(message, plan, protocol="vpc2022", **asked)


def test_what_a_participant_lacks_was_told_after_stage_0_alone(plan: Plan, corpus: Path) -> None:
    """Before stage 0 nobody knows the utterances, but folders of a challenge have names."""
    asked = {"protocol": "vpc2024", "systems": "", "attackers": "semi_informed"}
    asked["external"] = f"theirs={corpus}/vpc,suffix=_x"
    for name in ("e_trials_f_x", "e_trials_m_x", "IEMOCAP_dev_x", "e_asr_x", "train"):
        (corpus / "vpc" / name).mkdir(parents=True)
    said = "--protocol vpc2024: cannot run semi_informed on theirs with e/plda: there is no "
    refused(f"{said}enrolment speech that it protected; it belongs into --external", plan, **asked)
    (corpus / "vpc/e_enrolls_x").mkdir()
    mend = "training set that it protected; --external NAME=FOLDER,train=FOLDER"
    refused(said + mend, plan, **asked)
    (corpus / "vpc/train-clean-360_x").mkdir()
    assert "exp/scores/theirs/semi_informed.e+plda/AA/e_f" in commands(plan(**asked))


def test_W4_a_protocol_trains_on_its_own_subset_or_says_what_is_missing(plan, corpus):
    """Every subset that was there trained the attacker in silence."""
    (corpus / "prepare.sh").write_text("corpus=\ntrain_subsets=auto\n")
    (corpus / "Libri").mkdir()

    def made(protocol: str = "vpc2024", **more: str) -> list[str]:
        planned = followed(protocol=protocol, corpus=str(corpus / "Libri"), **more)
        return [*planned.tables.rows["prepare"][0].values["options"]]

    said = "--protocol vpc2024: .*Libri lacks train-clean-360, .* --prepare-options='--train-sub"
    refuses(said, made)
    assert made(prepare_options="--train-subsets=dev")[2:] == ["--train-subsets=dev"]
    with_blank = ["--train-subsets", "dev", "--lists", "my lists"]
    assert made(prepare_options="--train-subsets dev --lists 'my lists'")[2:] == with_blank
    (corpus / "Libri/train-clean-360").mkdir()
    assert made()[2:] == ["--train-subsets", "train-clean-360"]
    assert made(protocol="vpc2026_track2")[2:] == []


def test_a_folder_of_speech_with_blanks_in_its_name(plan: Plan, theirs: Path) -> None:
    there = theirs.rename(theirs.with_name("their speech = best"))
    planned = plan(systems="b2", external=f"a={there}/one  b={there}/one", attackers="ignorant")
    made = commands(planned)
    for name in ("a", "b"):
        assert f"--external {there}/one " in made[f"data/e_trials_f_{name}"]


def test_speech_of_others_stood_for_a_system_that_came_later(plan: Plan, theirs: Path) -> None:
    plan(systems="", external=f"mine={theirs}/one")
    assert "exp/external/mine.yaml" in commands(plan(systems="mine"))["data/e_trials_f_mine"]
    shutil.copy("conf/systems/b2.yaml", "conf/systems/mine.yaml")
    assert "conf/systems/mine.yaml" in commands(plan(systems="mine"))["data/e_trials_f_mine"]


def test_speech_of_others_that_cannot_be_taken_is_refused(plan, theirs, corpus):
    for utt in "bd":
        write_file(theirs / "half" / f"{utt}_x.wav", "")
    (theirs / "none").mkdir()
    for message, word in (
        (f"b3: {theirs}/half lacks 1 of 2 utterances of data/e_trials_f: c", f"b3={theirs}/half"),
        (f"{theirs}/none: holds neither audio", f"b3={theirs}/none"),
        ("there is no folder 'gone'", "b3=gone"),
        ("b2 is the name of original speech or of another system", f"b2={theirs}/one"),
        ("conf/systems/knnvc.yaml is another system", f"knnvc={theirs}/one"),
        ("has letters, digits, _ and - only", f"b.3={theirs}/one"),
        ("<name>=<folder>[,<folder>]", f"b3=train={theirs}/one"),
        ("is named twice", f"b3={theirs}/one,{theirs}/one"),
    ):
        refused(message, plan, systems="b2", external=word)
    refused("has no {out}", plan, systems="b2", external_command="b3=prog {in}")


def test_two_encoders_of_one_name_shared_their_xvectors(plan: Plan, corpus: Path) -> None:
    for name in ("mine/e", "theirs/e"):
        write_file(corpus / name / "encoder.yaml", "")
    message = "mine/e and theirs/e would both be called e"
    refused(message, plan, evaluators="mine/e/plda theirs/e/cosine")
    refused("e and mine/e would both be called e", plan, voice_encoder="mine/e")


def test_one_gender_after_both_trained_the_encoder_anew(plan: Plan) -> None:
    """Who must not be in the training set was named by the genders that were asked for."""
    both, one = (commands(plan(genders=of))["exp/encoders/e"] for of in ("f m", "f"))
    assert both == one and both.count("--not-speakers-of data/e_") == 3


def test_mixed_trials_alone_were_not_kept_from_training(plan: Plan, corpus: Path) -> None:
    """Who is tried and not enrolled could be a voice of the pool."""
    for gender in "fm":
        (corpus / f"data/e_trials_{gender}").rmdir()
    (corpus / "data/e_trials_mixed").mkdir()
    made = commands(plan(genders="mixed", systems="knnvc"))
    unseen = "--not-speakers-of data/e_enrolls --not-speakers-of data/e_trials_mixed "
    assert unseen in made["exp/pools/e"] and unseen in made["exp/encoders/e"]


def test_the_recipe_trained_generators_on_tested_speakers(plan: Plan, corpus: Path) -> None:
    """Where a corpus has nobody else its recipe.conf says why, and the log does."""
    systems = {"systems": "idmap_mlp psd"}
    plain, told = plan(**systems), plan(**systems, tested_train_generators="few")
    for planned, count in ((plain, 3), (told, 0)):
        made = commands(planned)
        psd, mlp = (made[f"exp/generators/e/{name}"] for name in ("psd", "idmap_mlp"))
        assert psd.count("--not-speakers-of") == mlp.count("--not-speakers-of") == count
    assert any(note.endswith("also evaluated: few") for note in told.notes)


def test_attackers_learnt_pseudo_voices_since_each_utterance_had_one(plan, corpus, theirs):
    """Several draws of the training set, joined; one where a draw changes nothing."""
    given = f"theirs={theirs}/one,{theirs}/two,train={theirs}/train"
    options = {"systems": "b2r b2", "attackers": "semi_informed_backend", "external": given,
               "external_command": "mine=prog {in} {out} {seed}"}  # fmt: skip
    for system in ("b2r", "theirs", "mine"):
        draw(f"e_enrolls_{system}")
    made = commands(plan(**options, informed_draws="3"))
    sets = ("data/train_b2r_utt", "data/train_b2r_utt_draw1", "data/train_b2r_utt_draw2")
    joined = "data/train_b2r_utt_draws3"
    assert made[joined] == f"steps/join_draws.py {joined} {' '.join(sets)}"
    assert ["--draw 1" in made[name] for name in sets] == [False, True, False]
    assert all("--level utt" in made[name] for name in sets)
    assert f" {joined} " in made["exp/backends/e.train_b2r_utt_draws3"]
    scores = made["exp/scores/b2r/semi_informed_backend.e+plda/AA/e_f"]
    held_out = "exp/held_out/e.train_b2r_utt_draws3"
    assert f"--training {joined} --held-out {held_out} " in scores
    held = f"--kind plda exp/xvectors/e/train_b2r_utt_draws3 {joined} {held_out}"
    assert made[held_out].endswith(held)
    assert "--external exp/external/mine/train.2 " in made["data/train_mine_utt_draw2"]
    once = {out: how for out, how in made.items() if re.match("data/train_(b2|theirs)_", out)}
    assert set(once) == {"data/train_b2_const", "data/train_theirs_utt"}
    one = commands(plan(**options, informed_draws="1"))
    assert one["data/train_b2r_utt"] == made["data/train_b2r_utt"]
    assert not [out for out in one if "_draws" in out or "utt_draw" in out]


def test_a_user_s_program_was_taken_to_move_nothing_in_time(plan: Plan) -> None:
    """Who hears timing learnt from one draw of what may have another timing in each."""
    draw("e_enrolls_mine")
    options = {"attackers": "semi_informed_backend", "evaluators": "timing/plda"}
    mine = {"systems": "", "external_command": "mine=prog {in} {out} {seed}", "voice_encoder": "e"}
    assert "exp/backends/timing.train_mine_utt_draws4" in commands(plan(**options, **mine))


def test_enrolment_was_protected_again_for_attackers_who_do_not_hear_it(plan, corpus) -> None:
    draw("e_enrolls_b2_lasting")
    few = {"evaluators": "resemblyzer/cosine", "genders": "f", "draws": "3"}
    made = commands(plan(**few, systems="b2_lasting", attackers="ignorant"))
    assert {out for out in made if "_draw" in out and out.startswith(("data/", "exp/x"))} == {
        f"{folder}/e_trials_f_b2_lasting_draw{n}"
        for folder in ("data", "exp/xvectors/resemblyzer") for n in (1, 2)
    }  # fmt: skip


def test_trials_were_protected_twice_for_evaluators_that_compare_no_runs(plan, corpus):
    """A third of the time of a run, for C_ECE, which counts of what is said do not have."""
    draw("e_enrolls_b2r")
    few = {"systems": "b2r", "genders": "f", "voice_encoder": "e", "draws": "2"}
    counted = commands(plan(**few, evaluators="sounds/tfidf"))
    assert "data/e_trials_f_b2r" in counted and not [out for out in counted if "draw1" in out]
    both = commands(plan(**few, evaluators="sounds/tfidf e/plda"))
    assert {out for out in both if "draw1" in out and "sounds" not in out} == {
        "data/e_trials_f_b2r_draw1", "exp/xvectors/e/e_trials_f_b2r_draw1",
        "exp/scores/b2r/ignorant_draw1.e+plda/OA/e_f",
        "exp/scores/b2r/lazy_informed_draw1.e+plda/AA/e_f",
    }  # fmt: skip
    assert both.keys() - counted.keys() >= {"exp/metrics/b2r/calibration.e+plda/OA/e_f"}


def finish(*folders: str) -> None:
    """Make folders as steps of a recipe do, each of a file of its own."""
    for folder in folders:
        source = Path("of") / folder.replace("/", "_")
        write_file(source, "old")
        stamps.Step([Path(folder)], ["score", str(source)]).begin()
        Path(folder).mkdir(parents=True)
        stamps.Step([Path(folder)], ["score", str(source)]).finish()


def remember(**options: str) -> None:
    """The files that a finished run leaves."""
    asked = Asked(options_of(TEMPLATE / "run.sh") | {"evaluators": "e/plda"} | options)
    write_json(FILE, what_counts(asked))


SHOWN = ("exp/metrics/b2/ignorant.e+plda/OA/e_f", "exp/metrics/b2r/ignorant.e+plda/OA/e_f",
         "exp/metrics/b2/utility.hub:m/PP/e_f", "exp/metrics/b2/utility.hub:m/PP/e_m")  # fmt: skip


def test_a_run_with_fewer_options_lost_figures_from_the_report(plan: Plan) -> None:
    """Figures that are up to date stay, and the log names the others. --drop is for those that
    nobody wants any more."""
    finish(*SHOWN)
    remember(systems="b2 b2r", asr="hub:m", genders="f m")
    few = {"systems": "b2", "genders": "f", "evaluators": "e/plda"}

    def shown(**options: str) -> tuple[set[str], list[str]]:
        planned = plan(**few, **options)
        words = commands(planned)["exp/results"].split()
        return {word for word in words if word in SHOWN}, planned.notes

    assert shown() == ({*SHOWN}, [])
    assert shown(drop="b2r hub:m")[0] == {SHOWN[0]}
    assert shown(drop="all")[0] == {SHOWN[0]}
    Path("of/exp_metrics_b2_utility.hub:m_PP_e_f").write_text("new")
    found, notes = shown()
    assert found == {*SHOWN} - {SHOWN[2]}
    assert notes == [f"not in the report: {SHOWN[2]}, made before, is out of date; name what "
                     "makes it"]  # fmt: skip
    found, notes = shown(seed="1")
    assert found == {SHOWN[0]}
    assert notes == ["not in the report: what earlier runs measured with another --seed"]
    remember(systems="b2", trainings="2")
    again = "--trained-again e_seed1/plda e/plda"
    assert again in commands(plan(**few))["exp/results"]
    assert again not in commands(plan(**few, drop="trainings"))["exp/results"]
    remember(systems="b2 b2r", asr="hub:m", genders="f m")
    refused("--drop: b3 is not remembered; there are: ", plan, **few, drop="b3")
    refused("--drop: b2 is in this run (--systems)", plan, **few, drop="b2")
    Path("conf/systems/b2r.yaml").unlink()
    assert "conf/systems/b2r.yaml is missing" in shown()[1][0]


def test_the_choice_of_the_strongest_was_computed_and_not_shown(plan: Plan, corpus: Path) -> None:
    folder = "exp/metrics/b2/strongest.all/-/e_f"
    (corpus / folder).mkdir(parents=True)
    made = commands(plan(systems="b2", genders="f", evaluators="e/plda", attackers="ignorant"))
    assert f"--figures {folder} " in made["exp/results"]
    assert f"local/label_figures.py e_f f b2 strongest - all - {folder}" in made[folder]
    assert made[folder].startswith("local/compute_metrics.py strongest")


def test_the_strongest_was_of_the_attackers_of_the_last_run_alone(plan: Plan) -> None:
    lazy, bare = "b2/lazy_informed.e+plda/AA/e_", "exp/metrics/original/unprotected.e+plda/OO/e_"
    finish(bare + "f", f"exp/scores/{lazy}f")
    remember(systems="b2", attackers="lazy_informed ignorant")

    def asked_of(folder: str, attackers: str = "ignorant") -> str:
        return commands(plan(systems="b2", attackers=attackers, evaluators="e/plda"))[folder]

    strongest, groups = "exp/metrics/b2/strongest.all/-/e_f", "exp/metrics/b2/groups.all/-/e"
    assert f"--another-attacker exp/scores/{lazy}f/scores" in asked_of(strongest)
    assert "ignorant" in asked_of(groups) and "lazy_informed" not in asked_of(groups)
    finish(bare + "m", f"exp/scores/{lazy}m")
    assert f"lazy_informed.e/plda 0 exp/scores/{lazy}m/scores" in asked_of(groups)
    finish(*(f"exp/scores/b2/ignorant.e+plda/OA/e_{gender}" for gender in "fm"))
    for folder in (strongest, groups):  # whichever run made which
        assert asked_of(folder) == asked_of(folder, "lazy_informed")
    Path("of/" + f"exp/scores/{lazy}f".replace("/", "_")).write_text("new")
    assert "lazy_informed" not in asked_of(strongest)


@pytest.mark.parametrize("family", ["strongest", "groups"])
def test_attackers_who_were_dropped_were_among_the_strongest(plan: Plan, family: str) -> None:
    """The verdict on b2r was the EER of one, under the name of another."""
    folder = f"exp/metrics/b2r/{family}.all/-/e" + ("_f" if family == "strongest" else "")
    scores = [Path(f"exp/scores/b2r/{one}/e_f/scores")
              for one in ("ignorant.e+plda/OA", "lazy_informed.e+plda/AA")]  # fmt: skip
    for path in scores:
        write_json(path, {})
    step = stamps.Step([folder], ["choose", *map(str, scores)])
    step.begin()
    Path(folder).mkdir(parents=True)
    step.finish()
    remember(systems="b2 b2r", attackers="ignorant lazy_informed")

    def shown(drop: str) -> bool:
        run = {"systems": "b2", "attackers": "ignorant", "evaluators": "e/plda", "drop": drop}
        return folder in commands(plan(**run))["exp/results"].split()

    assert shown("") and not shown("lazy_informed")


def test_a_report_asked_for_speech_of_lists_that_only_another_system_saw(plan, corpus):
    remember(systems="b2r", genders="f")
    draw("e_trials_f_b2r")
    (corpus / "exp/metrics/b2/similarity.e+plda/OO-OP-PP/e_m").mkdir(parents=True)
    made = commands(plan(systems="b2", genders="m", evaluators="e/plda", attackers="ignorant"))
    told = made["exp/results"]
    assert "--speech b2 data/e_trials_m data/e_trials_m_b2" in told
    assert "--speech b2 data/e_trials_f " not in told


def test_options_remembered_before_there_were_controls_ended_in_a_traceback(plan: Plan) -> None:
    remember(systems="b2r")
    before = json.loads(FILE.read_text())
    del before["lists"]["controls"]
    FILE.write_text(json.dumps(before))
    lists = plan(systems="b2", evaluators="e/plda").remembered["lists"]
    assert isinstance(lists, dict) and lists["systems"] == ["b2", "b2r"]


def test_one_output_has_one_command() -> None:
    tables = Tables()
    tables.add("audio", "exp/a", data="data/a")
    tables.add("audio", "exp/a", data="data/a")
    assert [row.out for row in tables.rows["audio"]] == ["exp/a"]
    refuses("exp/a would be made in two ways", tables.add, "audio", "exp/a", data="b")


def test_a_system_called_like_a_draw_of_another_was_a_traceback(plan, theirs) -> None:
    """Both are data/e_trials_f_b2r_draw1."""
    draw("e_enrolls_b2r")
    said = "data/e_trials_f_b2r_draw1 would be made in two ways; give"
    refused(said, plan, systems="b2r", external=f"b2r_draw1={theirs}/one")


@pytest.mark.parametrize("name", CASES)
def test_the_same_options_plan_the_same_commands(here, name: str) -> None:
    """`python -m tests.plans` writes them anew. Programs are there, and all of a plan is made."""
    make_corpus(here)
    made = plan_case(name)
    assert made == (KEPT / f"{name}.tsv").read_text()
    commands = (one for line in made.splitlines() for one in line.split("\t")[2].split(" && "))
    others = ("./prepare.sh", "mkdir", "cp")
    assert all((ROOT / p).is_file() or p in others for p in {one.split()[0] for one in commands})


def measured(genders: str) -> str:
    """As if run.sh had figures of `random`; returns their path."""
    of = "random/similarity.e+plda/OO-OP-PP/e"
    finish(*(f"exp/metrics/{of}_{gender}" for gender in genders))
    return of


def test_systems_are_varied(corpus: Path) -> None:
    """nist.sh sets profiles where a system knows them, else a profile is a draw; what a system
    cannot have is refused, and no file is left of it."""
    defaults = options_of(TEMPLATE / "nist.sh") | {"evaluators": "e/plda", "profiles": "8"}
    asked, folder = Asked(defaults | {"systems": "knnvc b2r"}), corpus / "exp/nist/e_nist/conf"
    draw("e_nist_b2r_p1")
    made = commands(STUDIES["nist"](asked), "nist.sh")
    knn = read_settings("conf/systems/knnvc.yaml")
    assert read_settings(folder / "knnvc_p2.yaml") == {**knn, "profiles": 8, "profile": 2}
    assert "--draw 0" in made["data/e_nist_knnvc_p1"]
    assert read_settings(folder / "b2r_p2.yaml") == read_settings("conf/systems/b2r.yaml")
    assert "--draw 0" in made["data/e_nist_b2r_p1"] and "--draw 1" in made["data/e_nist_b2r_p2"]
    refuses("--tested 9: from 1 to 8", STUDIES["nist"], asked.changed({"tested": "9"}))
    conf = Path("conf/systems/const_01.yaml")
    text = conf.read_text()
    for changed, message in (
        (text.replace("synthesiser: world", "synthesiser: word"), "synthesiser: 'word'; world"),
        (re.sub("generator:.*", "generator: 3", text), "generator: settings are expected"),
    ):
        conf.write_text(changed)
        refuses(message, STUDIES["nist"], asked.changed({"systems": "const_01"}))
        assert not (folder / "const_01_p1.yaml").exists()


def generators(**options: str) -> tuple[dict[str, str], list[str]]:
    """Commands of a study of random voices by their outputs, and notes."""
    own = {"evaluators": "e/plda", "generators": "random"} | options
    planned = STUDIES["generators"](Asked(options_of(TEMPLATE / "generators.sh") | own))
    return commands(planned, "generators.sh"), planned.notes


def test_a_plda_of_principal_axes_was_trained_without_them_in_a_study(corpus: Path) -> None:
    asked = options_of(TEMPLATE / "nist.sh") | {"evaluators": "e/plda_pca", "systems": "b2r"}
    made = commands(STUDIES["nist"](Asked(asked)), "nist.sh")
    assert "--pca-dim 100" in made["exp/backends_pca/e"]


def test_voices_of_both_genders_stand_in_one_matrix_as_in_004(corpus: Path) -> None:
    """Where run.sh has the figures of each."""
    results, pooled = "exp/generators/e/results", "exp/generators/e/pooled"
    of = measured("f")
    assert pooled not in generators()[0][results]
    measured("m")
    made, _ = generators()
    both = f"--attacked exp/metrics/{of}_m --attacked {pooled}/metrics/{of} "
    assert both in made[results]
    label = f"e - random similarity - e/plda OO-OP-PP {pooled}/metrics/{of}"
    assert made[f"{pooled}/metrics/{of}"].endswith(label)
    trials = "exp/xvectors/e/e_trials_f_random exp/xvectors/e/e_trials_m_random"
    assert made[f"{pooled}/e/random"].endswith(trials)
    scored = made[f"{pooled}/random.e+plda/OP"]
    assert f"--utt2spk {pooled}/data/utt2spk {pooled}/e/original {pooled}/e/random" in scored
    assert made[f"{pooled}/data"].endswith("data/e_trials_f data/e_trials_m")


def test_mixed_trials_made_every_source_of_a_generator_count_twice(corpus: Path) -> None:
    (corpus / "data/e_trials_mixed").mkdir()
    for genders, used in (("f m mixed", "f m"), ("mixed", "mixed")):
        made, _ = generators(genders=genders)
        names = ("capacity/random", "threshold")
        capacity, threshold = (made[f"exp/generators/e/{name}"] for name in names)
        assert re.findall(r"--sources \S+ data/e_trials_(\w+)", capacity) == used.split()
        assert re.findall(r"--list data/e_trials_(\w+)/", threshold) == used.split()


def test_attacks_on_both_genders_have_one_error_rate(corpus: Path) -> None:
    """Where run.sh has the scores of each; pairs of segments, as an attacker's evaluator hears
    them, are no attack."""
    measured("fm")
    for family, attacker, genders in (("verification", "ignorant", "fm"),
                                      ("verification", "aligned", "f"),
                                      ("similarity", "semi_informed", "fm")):  # fmt: skip
        for gender in genders:
            attack = Labels(f"e_{gender}", gender, "random", family, attacker, "e/plda", "OA")
            finish(f"exp/scores/{attack.path}")
            write_labels(Path("exp/metrics", attack.path), attack)
    made, _ = generators()
    pooled, of = "exp/generators/e/pooled", "random/ignorant.e+plda/OA/e"
    given = f"{pooled}/data/trials exp/scores/{of}_f/scores {pooled}/metrics/{of}/metrics.json"
    assert f"{given} && " in made[f"{pooled}/metrics/{of}"]
    assert f" --more-scores exp/scores/{of}_m/scores " in made[f"{pooled}/metrics/{of}"]
    assert made["exp/generators/e/results"].count(f"{pooled}/metrics/random/") == 2


@pytest.mark.usefixtures("corpus")
def test_generators_stood_beside_figures_of_older_speech() -> None:
    """Capacity of a changed system beside the de-identification that it had before."""
    of, scores = measured("fm"), "exp/scores/random/ignorant.e+plda/OA/e"
    finish(f"{scores}_f", f"{scores}_m")
    attack = Labels("e_f", "f", "random", "verification", "ignorant", "e/plda", "OA")
    write_labels(Path("exp/metrics", attack.path), attack)
    for folder in (f"exp/metrics/{of}_f", f"{scores}_f"):
        Path("of", folder.replace("/", "_")).write_text("new")
    made, notes = generators()
    assert f"exp/metrics/{of}_m " in made["exp/generators/e/results"]
    assert f"exp/metrics/{of}_f " not in made["exp/generators/e/results"]
    assert not any("pooled" in out for out in made)
    note = f"out of date, and not shown: exp/metrics/{of}_f; ./run.sh makes it anew"
    assert note in notes


def test_a_recipe_is_short_and_reads_its_options_only() -> None:
    """170 lines, 90 for a study."""
    for path in TEMPLATE.glob("*.sh"):
        lines = path.read_text().splitlines()
        assert len(lines) <= (170 if path.name == "run.sh" else 90), path.name


def test_a_recipe_s_plan_of_every_corpus(corpus: Path) -> None:
    """Each system of the recipe's settings can be planned."""
    for name in list_settings(corpus / "conf/systems"):
        asked = options_of(TEMPLATE / "run.sh") | {"evaluators": "e/plda"}
        recipe = Recipe.make(Asked(asked))
        assert recipe.needs(name, "e_enrolls") is not None


WORDS = {"systems": "b2", "attackers": "ignorant semi_informed_backend aligned semi_informed"}


def test_without_a_recogniser_words_are_missing(plan, monkeypatch):
    """The channel is said to be missing where nothing recognises words."""
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    both = WORDS | {"evaluators": "words/tfidf resemblyzer/cosine"}
    planned = plan(**both)
    assert any("words/tfidf: nothing recognises words: moon" in note for note in planned.notes)
    assert not any("words" in out for out in planned.tables.every_out())
    assert "exp/xvectors/words/e_enrolls" in plan(**both, asr="hub:w").tables.every_out()
    refused("nothing recognises words", plan, voice_encoder="resemblyzer", evaluators="words/tfidf")
