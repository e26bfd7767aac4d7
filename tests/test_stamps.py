"""Stamps: what is redone after which change, and what is left of a killed run."""

import ast
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from steps.anonymisers.external import find_names
from tests.refusals import refuses
from utils import digests, stamps
from utils.tables import write_file, write_timed


def why(out: str, *command: str, remade: Sequence[str] = ()) -> str | None:
    return stamps.Step([out], command).why(remade)


def make(out: Path, command: list[str]) -> None:
    stamps.Step([out], command).begin()
    write_file(out / "result", " ".join(command))
    stamps.Step([out], command).finish()


@pytest.fixture
def work(here: Path) -> Path:
    (here / "conf.yaml").write_text("alpha: 0.8\n")
    return here


def test_options_count_unless_they_cannot_change_a_result(work):
    make(Path("a"), ["tool", "--dim", "1", "conf.yaml"])
    changed = "the command changed from: --dim 1 to: --dim 2"
    assert why("a", "tool", "--dim", "2", "conf.yaml") == changed
    assert why("a", "tool", "--dim", "1", "conf.yaml", "--nj", "8") is None
    assert why("a", "tool", "--dim", "1", "conf.yaml", "--nj=8", "--download", "true") is None


def test_of_a_long_command_only_what_changed_is_said(work):
    """A run with one system more printed both commands, 30,000 letters each."""
    many = [f"exp/metrics/{i}" for i in range(1000)]
    make(Path("a"), ["tool", "--seed", "0", *many])
    for words, said in (
        (["1", *many], "the command changed from: --seed 0 to: --seed 1"),
        (["0", *many, "exp/b"], "the command now has: exp/b"),
        (["0", *many[2:]], "the command has no longer: exp/metrics/0 exp/metrics/1"),
    ):
        assert why("a", "tool", "--seed", *words) == said
    assert len(why("a", "other", "--seed", "2") or "") < 700


def test_vpc20_stale_xvectors_chain_through_the_stamps(work):
    """Conventions 2.13: audio protected with other settings at the same place was not noticed."""
    make(Path("data"), ["anonymise", "conf.yaml"])
    make(Path("xvectors"), ["extract", "data"])
    make(Path("scores"), ["score", "xvectors"])
    before = Path("data/result").read_bytes()
    Path("conf.yaml").write_text("alpha: 0.7\n")
    make(Path("data"), ["anonymise", "conf.yaml"])
    assert Path("data/result").read_bytes() == before  # same names and tables, other audio
    assert why("xvectors", "extract", "data") == "data changed"
    make(Path("xvectors"), ["extract", "data"])
    assert why("scores", "score", "xvectors") == "xvectors changed"


def write_checkpoint(path: Path, columns: Sequence[str], rows: list[list[object]]) -> None:
    write_file(path, f"{columns} {rows}")


@pytest.mark.parametrize(
    ("table", "write", "new"),
    [
        ("training.tsv", write_timed, False),
        ("checkpoints/step-5.pt", write_checkpoint, False),
        ("training.tsv", write_checkpoint, True),  # nothing says that it holds seconds
    ],
)
def test_the_time_that_a_training_took_does_not_change_what_was_made_of_it(work, table, write, new):
    """The digest of a figure's settings had the CPU time of the training of its encoder in it."""
    digests = set()
    for seconds in (0.3, 0.4):
        stamps.Step([Path("encoder")], ["train", "conf.yaml"]).begin()
        write(Path("encoder") / table, ["step", "seconds"], [[5, seconds]])
        stamps.Step([Path("encoder")], ["train", "conf.yaml"]).finish()
        make(Path("scores"), ["score", "encoder"])
        digests.add(stamps.provenance(Path("scores")))
        shutil.rmtree("encoder")
        shutil.rmtree("scores")
    assert (len(digests) > 1) == new


def test_a_killed_run_leaves_nothing_that_looks_finished(work):
    make(Path("a"), ["tool"])
    Path("conf.yaml").write_text("new")
    stamps.Step([Path("a")], ["tool", "conf.yaml"]).begin()  # and killed here
    assert not Path("a").exists()
    assert why("a", "tool", "conf.yaml") == "interrupted before"


def test_the_same_command_resumes_and_another_starts_afresh(work):
    train = stamps.Step(["a"], ["train", "conf.yaml"])
    train.begin()
    write_file("a/checkpoint", "step 100")
    train.begin()
    assert Path("a/checkpoint").exists()
    stamps.Step([Path("a")], ["train", "conf.yaml", "--fast"]).begin()
    assert not Path("a").exists()


def test_a_folder_that_no_recipe_made_is_not_cleared(work):
    write_file("precious/thesis", "years")
    refuses("was not made by a recipe", stamps.Step(["precious"], ["tool"]).begin)
    assert Path("precious/thesis").exists()


def test_an_input_that_appears_during_the_run_counts_as_it_then_is(work):
    command = ["prepare", "--corpus", "corpus"]
    stamps.Step([Path("data")], command).begin()
    for name in ("corpus", "data"):
        write_file(Path(name, "file"), "x")
    stamps.Step([Path("data")], command).finish()
    assert why("data", *command) is None


def test_an_input_changed_during_the_run_makes_it_stale(work):
    stamps.Step([Path("a")], ["tool", "conf.yaml"]).begin()
    Path("conf.yaml").write_text("edited meanwhile")
    Path("a").mkdir()
    stamps.Step([Path("a")], ["tool", "conf.yaml"]).finish()
    assert why("a", "tool", "conf.yaml") == "conf.yaml changed"


def test_code_counts_but_comments_and_docstrings_do_not(work):
    program = Path("tool.py")
    program.write_text('"""Doc."""\nfrom utils.seeds import derive_seed\nX = 1  # one\n')
    first = stamps.digest_code(program)
    program.write_text('"""Other doc."""\n\nfrom utils.seeds import derive_seed\nX = 1\n')
    assert stamps.digest_code(program) == first
    program.write_text('"""Doc."""\nfrom utils.seeds import derive_seed\nX = 2\n')
    assert stamps.digest_code(program) != first


def test_the_words_of_a_page_are_code_too(work, monkeypatch):
    """They stand in templates, which no import names, and which include others."""
    monkeypatch.setattr(stamps, "ROOT", work)
    folder = work / "local/report/templates"
    folder.mkdir(parents=True)
    program, page, part = work / "p.py", folder / "a.md.jinja", folder / "b.jinja"
    columns = folder.parent / "t.yaml"
    program.write_text('page = "local/report/templates/a.md.jinja", "local/report/t.yaml"\n')
    page.write_text('{% include "local/report/templates/b.jinja" %}\n')
    part.write_text("one\n")
    columns.write_text("one\n")
    found = [stamps.digest_code(program)]
    for path in (part, page, columns):
        path.write_text(path.read_text() + "more\n")
        found.append(stamps.digest_code(program))
    assert len(set(found)) == 4


def test_the_code_of_a_system_that_a_registry_names_in_a_string_counts():
    """Systems are loaded when asked for; a change in kNN-VC left its old speech up to date."""
    found = stamps._project_imports(ast.parse('KINDS = {"knn": "steps.anonymisers.knn_vc:K"}'))
    assert stamps.ROOT / "steps/anonymisers/knn_vc.py" in found


def test_an_scp_stands_for_what_it_names(work):
    """The same names and offsets, other x-vectors: the scp alone does not show it."""

    def extract() -> None:
        stamps.Step([Path("x")], ["extract", "conf.yaml"]).begin()
        write_file("x/xvector.scp", "utt x/xvector.ark:4\n")
        stamps.Step([Path("x")], ["extract", "conf.yaml"]).finish()

    extract()
    make(Path("figures"), ["leakage", "x/xvector.scp"])
    assert why("figures", "leakage", "x/xvector.scp") is None
    Path("conf.yaml").write_text("alpha: 0.7\n")
    extract()
    found = why("figures", "leakage", "x/xvector.scp")
    assert found == "x/xvector.scp changed"


@pytest.mark.parametrize("word", ["hub:model", "p1=model", "model"])
def test_nist_a_folder_named_within_a_word_was_no_input(work, word):
    """join_xvectors.py got p1=FOLDER: figures of new x-vectors stood beside old cross-profile
    ones. A changed model of hub:FOLDER was not noticed either."""
    write_file(work / "model/hyperparams.yaml", "size: 1\n")
    make(Path("a"), ["tool", word])
    assert why("a", "tool", word) is None
    assert why("a", "tool", word, remade={"model"}) == f"{word} is made anew"
    (work / "model/hyperparams.yaml").write_text("size: 22\n")
    assert why("a", "tool", word) == f"{word} changed"


def test_external_speech_made_anew_in_the_same_place_was_not_noticed(work):
    """Another system's data directory says where its audio is, not what is in it."""
    audio = work / "a.wav"
    audio.write_bytes(b"old!")
    write_file("theirs/wav.scp", f"a {audio}\nb sox {audio} |\n")
    (work / "theirs/utt2spk").write_text("a s\nb s\n")
    make(Path("x"), ["tool", "theirs"])
    assert why("x", "tool", "theirs") is None
    audio.write_bytes(b"new!")
    os.utime(audio, ns=(1, 1))
    assert why("x", "tool", "theirs") == "theirs changed"


@pytest.fixture
def speech(work: Path) -> Path:
    """data/x, made of a corpus, and data/x_b2, which has audio of its own in it."""
    for name in ("corpus/s/a.flac", "data/x_b2/wav/a.wav"):
        write_file(name, b"speech of a")
    stamps.Step([Path("data/x")], ["prepare"]).begin()
    write_file("data/x/wav.scp", f"a {work}/corpus/s/a.flac\n")
    stamps.Step([Path("data/x")], ["prepare"]).finish()
    shutil.move("data/x_b2", "made")
    stamps.Step([Path("data/x_b2")], ["protect", "data/x"]).begin()
    shutil.move("made", "data/x_b2")
    Path("data/x_b2/wav.scp").write_text("a data/x_b2/wav/a.wav\n")
    for passing in ("log/protect.1.log", "split2/1/utt2spk"):
        write_file(Path("data/x_b2", passing), "of no figure")
    stamps.Step([Path("data/x_b2")], ["protect", "data/x"]).finish()
    Path("exp").mkdir()
    return work


@pytest.mark.parametrize("change", [lambda p: p.write_bytes(b"speech of b"), Path.unlink])
@pytest.mark.parametrize("kept", [False, True])
def test_audio_that_was_overwritten_or_deleted_was_not_noticed(speech, monkeypatch, change, kept):
    """Only files directly in a stamped folder were digested: "nothing to do" was said."""
    monkeypatch.setattr(digests, "SETTLED", -9e9)
    for step, audio in (
        (["data/x", "prepare"], f"{speech}/corpus/s/a.flac"),
        (["data/x_b2", "protect", "data/x"], "data/x_b2/wav/a.wav"),
    ):
        if not kept:
            monkeypatch.setattr(stamps, "MEMORY", Path("nowhere/digests"))
        assert why(*step) is None
        old = Path(audio).read_bytes()
        change(Path(audio))
        assert f"{audio.removeprefix('data/x_b2/')} not as the step left it" in str(why(*step))
        Path(audio).write_bytes(old)
        assert why(*step) is None
    Path("data/x_b2/log/protect.1.log").write_text("another run looked at it")
    shutil.rmtree("data/x_b2/split2")
    assert why(*step) is None


def test_a_corpus_counted_by_names_and_sizes_only(work):
    """Another file of the same name and size was not noticed, nor one behind a link."""
    for name in ("corpus", "disk"):
        write_file(work / name / "s/a.flac", b"speech of a")
    (work / "corpus/linked").symlink_to(work / "disk")
    (work / "disk/loop").symlink_to(work / "corpus")
    command = ["prepare", "--corpus", "corpus"]
    make(Path("a"), command)
    for name in ("corpus", "disk"):
        (work / name / "s/a.flac").write_bytes(b"speech of b")
        assert why("a", *command) == "corpus changed"
        (work / name / "s/a.flac").write_bytes(b"speech of a")
        assert why("a", *command) is None


def test_files_that_have_not_changed_are_not_read_again(speech, monkeypatch):
    """And a memory that is broken is made anew; a file written a moment ago is not trusted yet."""
    read: list[str] = []
    of_file = digests._read_file
    monkeypatch.setattr(digests, "_read_file", lambda path: read.append(str(path)) or of_file(path))

    def n_read() -> int:
        read.clear()
        assert why("data/x_b2", "protect", "data/x") is None
        return len(read)

    monkeypatch.setattr(digests, "SETTLED", 9e9)  # with 2 s a busy machine is late for it
    assert n_read() == n_read() == 4
    monkeypatch.setattr(digests, "SETTLED", -9e9)
    assert n_read() == 4
    assert n_read() == 0
    for broken in (b"no database", stamps.MEMORY.read_bytes()[:5000]):
        stamps.MEMORY.write_bytes(broken)
        assert n_read() == 4
    n_read()
    assert n_read() == 0
    stamps.MEMORY.unlink()
    stamps.MEMORY.mkdir()
    assert n_read() == 4


def test_another_version_of_a_user_s_program_was_not_noticed(work):
    """Speech that the earlier one protected went for its own. It may be of another Python."""
    program, conf = Path("theirs/protect.py"), Path("exp/external/theirs.yaml")
    write_file(program, b"print 'one' # f\xfcr\n")
    write_file(
        conf, "anonymiser: command\ncommand: python theirs/protect.py --how=how {in} {out}\n"
    )
    command = ["protect", str(conf), "data"]
    make(Path("exp/external/theirs/x.0"), command)
    assert stamps.is_current(Path("exp/external/theirs/x.0"), {})
    program.write_bytes(b"print 'two' # f\xfcr\n")
    assert why("exp/external/theirs/x.0", *command) == "the code of theirs/protect.py changed"
    assert not stamps.is_current(Path("exp/external/theirs/x.0"), {})
    make(Path("exp/external/theirs/x.0"), command)
    Path("how").write_text("otherwise")  # a file behind an option's = was not noticed either
    assert why("exp/external/theirs/x.0", *command) == "how changed"
    Path("broken.yaml").write_text("command: [\n")
    make(Path("told"), ["protect", "broken.yaml"])  # by the step itself


def test_a_long_word_of_a_user_s_command_ended_the_recipe(work):
    """OSError: File name too long."""
    program = "import shutil; " * 20
    Path("theirs.yaml").write_text(f"anonymiser: command\ncommand: python3 -c '{program}'\n")
    make(Path("told"), ["protect", "theirs.yaml", program])
    assert why("told", "protect", "theirs.yaml", program) is None


def test_a_table_beside_a_module_did_not_count():
    """Vectors of channels are deviations from steps/channels/typical.tsv."""
    for program, table in (("extract_channel", "channels/typical.tsv"),
                           ("make_synthetic_corpus", "synthetic/sentences.yaml")):  # fmt: skip
        assert f"steps/{table}" in stamps.code_of(stamps.ROOT / f"steps/{program}.py")


def test_speech_that_others_name_from_a_folder_above_was_not_read_again(work):
    """In VoicePrivacy 2020 audio lies in exp/, and data/<set>/wav.scp names it from the root."""
    folder, audio = Path("theirs/data"), Path("theirs/exp/wav/a.wav")
    for place in (folder / "x_anon", audio.parent):
        place.mkdir(parents=True)
    audio.write_bytes(b"one")
    (folder / "x_anon/wav.scp").write_text("a exp/wav/a.wav\n")
    assert find_names(folder)["a"] == str(audio.absolute())
    make(Path("taken"), ["anonymise", "--external", str(folder)])
    assert why("taken", "anonymise", "--external", str(folder)) is None
    audio.write_bytes(b"two")
    assert why("taken", "anonymise", "--external", str(folder)) == f"{folder} changed"


def test_a_path_of_others_that_is_also_one_of_ours_was_not_read_again(work, monkeypatch):
    """Both recipes have exp/wav/a.wav; the speech that is measured is theirs, ours was digested."""
    for place, text in (("ours/exp/wav/a.wav", "ours"), ("theirs/exp/wav/a.wav", "one"),
                        ("theirs/data/x_anon/wav.scp", "a exp/wav/a.wav\n")):  # fmt: skip
        write_file(place, text)
    folder = Path("theirs/data/x_anon").absolute()
    monkeypatch.chdir("ours")
    make(Path("taken"), ["anonymise", "--external", str(folder)])
    Path(find_names(folder)["a"]).write_text("two")
    assert why("taken", "anonymise", "--external", str(folder)) == f"{folder} changed"


def test_an_archive_elsewhere_counts_with_the_scp_that_names_its_objects(work):
    Path("far.ark").write_bytes(b"a \0B1b \0B2")
    write_file("x/x.scp", "a far.ark:2\nb far.ark:7[0:3]\n")
    before = digests.contents(Path("x"), ours=True), stamps.digest_path(Path("x/x.scp"))
    assert set(before[0]) == {"x.scp", "far.ark"}
    Path("far.ark").write_bytes(b"a \0B1b \0B3")
    after = digests.contents(Path("x"), ours=True), stamps.digest_path(Path("x/x.scp"))
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_a_comment_in_the_settings_of_a_system_redid_a_third_of_the_steps(work):
    make(Path("a"), ["tool", "conf.yaml"])
    Path("conf.yaml").write_text("# as published\nalpha:   0.8 # of the pole\n")
    assert why("a", "tool", "conf.yaml") is None
    for text in ("alpha: 0.80\n", "alpha: '0.8'\n", "alpha: [0.8\n"):
        Path("conf.yaml").write_text(text)
        assert why("a", "tool", "conf.yaml") == "conf.yaml changed"


def test_a_step_began_while_a_job_of_its_folder_lived(work):
    """Files that it wrote later stood under the stamp of the next run."""
    log = work / "out/log/x.log"
    log.parent.mkdir(parents=True)
    with log.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # as utils/run.py does for the job
        said = r"log/x\.log: a job of another run still writes it"
        refuses(said, stamps.Step([work / "out"], ["make"]).begin)
    assert log.exists()


def begun(corpus: str) -> stamps.Step | None:
    """The step of a corpus, begun as by the driver if it is not up to date; else None."""
    step = stamps.Step(["data/x", "data/y"], ["prepare", corpus], ["data/z"])
    step.settle()
    if step.why() is None:
        return None
    step.begin()
    return step


def prepare(corpus: str) -> None:
    """Make data/x and data/y; only the old corpus has data/z."""
    if step := begun(corpus):
        for name in "xyz" if corpus == "old" else "xy":
            Path("data", name).mkdir(parents=True)
            Path("data", name, "table").write_text(corpus)
        step.finish()


def test_a_run_that_was_killed_lost_what_was_finished(work, monkeypatch):
    """begin removed the outputs, and so did a step that then failed. Whenever the run ends, before
    any change of a file: either all is as it was, or all is new."""
    left = 0

    def kill(change):
        def changed(*args, **options):
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return change(*args, **options)

        return changed

    for moment in range(1000):
        (work / str(moment)).mkdir()
        monkeypatch.chdir(work / str(moment))
        prepare("old")
        left = moment
        with monkeypatch.context() as killed, contextlib.suppress(KeyboardInterrupt):
            for name in ("rename", "unlink", "mkdir", "write_text", "replace"):
                killed.setattr(Path, name, kill(getattr(Path, name)))
            killed.setattr(shutil, "rmtree", kill(shutil.rmtree))
            prepare("new")
        found = next(corpus for corpus in ("old", "new") if begun(corpus) is None)
        for name in "xy":
            assert Path("data", name, "table").read_text() == found
        assert Path("data/z/table").exists() == (found == "old")
        if left >= 0:
            break
    assert found == "new" and moment > 20


def test_figures_are_current_as_long_as_all_that_they_rest_on_is(work):
    """A recogniser's words, heard before the speech was protected anew, are a whole step of their
    own: only the step before it shows that they are old."""
    make(Path("data"), ["protect", "conf.yaml"])
    make(Path("words"), ["decode", "data"])
    make(Path("figures"), ["score", "words/result"])
    make(Path("others"), ["score"])

    def current() -> list[str]:
        known: dict[Path, bool] = {}
        return [n for n in ("figures", "others", "never") if stamps.is_current(Path(n), known)]

    assert current() == ["figures", "others"]
    Path("conf.yaml").write_text("alpha: 0.7\n")
    assert current() == ["others"]
    make(Path("data"), ["protect", "conf.yaml"])
    assert current() == ["others"]
    make(Path("words"), ["decode", "data"])
    assert current() == ["figures", "others"]  # the same words
    Path("others/result").write_text("by hand")
    assert current() == ["figures"]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository for the project's, inside another one that has a tag."""
    who = ("-c", "user.name=t", "-c", "user.email=t@t")
    for folder in (tmp_path, tmp_path / "ours"):
        subprocess.run(["git", "init", "-q", folder], check=True)
        for name in (".commit", ".gitattributes"):
            shutil.copy(stamps.ROOT / name, folder)
        subprocess.run(["git", "add", "."], cwd=folder, check=True)
        subprocess.run(["git", *who, "commit", "-qm", folder.name], cwd=folder, check=True)
    subprocess.run(["git", "tag", "v9.9"], cwd=tmp_path, check=True)
    monkeypatch.setattr(stamps, "ROOT", tmp_path / "ours")
    return tmp_path / "ours"


def commit_in(folder: Path) -> str:
    words = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.check_output(words, cwd=folder, text=True).strip()


def test_an_archive_took_the_commit_of_a_repository_around_it(checkout, monkeypatch):
    """As the zip of a hosting page, unpacked in a repository of one's own."""
    commit = commit_in(checkout)
    archive = checkout.with_name("archive")
    archive.mkdir()
    subprocess.run("git archive HEAD | tar -xC ../archive", shell=True, check=True, cwd=checkout)
    monkeypatch.setattr(stamps, "ROOT", archive)
    assert stamps.commit_of_code() == f"{commit} (an archive of it)"
    shutil.copy(checkout / ".commit", archive)  # files copied without git
    assert stamps.commit_of_code() == "not a git checkout"
    (archive / ".commit").unlink()
    assert stamps.commit_of_code() == "not a git checkout"


def test_the_commit_of_a_checkout_is_its_own(checkout, tmp_path, monkeypatch):
    commit = commit_in(checkout)
    assert stamps.commit_of_code() == commit
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))  # in a hook of the other one
    assert stamps.commit_of_code() == commit
    monkeypatch.delenv("GIT_DIR")
    subprocess.run(["git", "worktree", "add", "-q", "../linked"], cwd=checkout, check=True)
    monkeypatch.setattr(stamps, "ROOT", tmp_path / "linked")
    assert stamps.commit_of_code() == commit
    (tmp_path / "linked/.commit").write_text("changed\n")
    assert stamps.commit_of_code() == f"{commit}-dirty"
    shutil.rmtree(checkout)  # .git names it
    assert stamps.commit_of_code() == "unknown: git cannot read .git"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
def test_a_checkout_of_another_owner_counted_as_none(checkout, tmp_path, monkeypatch):
    commit = commit_in(checkout)
    monkeypatch.setenv("HOME", str(tmp_path))  # without a safe.directory
    for path in (checkout, *checkout.rglob("*")):
        os.chown(path, 65534, 65534)
    assert subprocess.run(["git", "describe"], cwd=checkout, capture_output=True).returncode
    assert stamps.commit_of_code() == commit


def test_a_script_called_a_program_that_was_no_program_any_more():
    """local/challenge_lists.sh ended at utils/stamps.py, which only the driver had imported."""
    root = stamps.ROOT
    scripts = (
        path for top in ("egs/TEMPLATE", "local", "utils") for path in root.glob(f"{top}/*.sh")
    )
    called = r"^\s*(?:exec )?((?:utils|steps|local)/\w+\.py)\b"
    names = {*re.findall(called, "\n".join(p.read_text() for p in scripts), re.M)}
    assert {"utils/stamps.py", "local/run_recipe.py"} <= names
    assert not [name for name in names if not os.access(root / name, os.X_OK)]


def test_help_was_taken_for_the_name_of_an_output(work):
    for words in (["--help"], ["exp/a"], []):
        refuses("usage: stamps.py OUT COMMAND", stamps.main, words)
    assert not list(work.glob(".*"))


def test_a_command_is_run_under_a_stamp(work):
    command = ["exp/a", "cp", "conf.yaml", "exp/a/result"]
    assert stamps.main(command) == 0
    made = Path("exp/a/result").stat().st_mtime_ns
    assert stamps.main(command) == 0
    assert Path("exp/a/result").stat().st_mtime_ns == made
    Path("conf.yaml").unlink()
    assert stamps.main(command) == 1  # and what was there is put back
    assert Path("exp/a/result").stat().st_mtime_ns == made
