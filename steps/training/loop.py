"""One training loop for all networks: batches, log, validation, checkpoints, resuming, the best."""

import io
import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from steps.training.settings import LoopSettings
from steps.training.weights import load_state
from utils.cli import UserError
from utils.settings import write_settings
from utils.tables import atomic_write, write_timed

# ---- Training batches, each a function of (seed, step) alone, made ahead by worker processes.
#
# So a run that was stopped and resumed sees the same batches as one that was not, and their order
# does not depend on the number of workers.

_AHEAD = 4  # batches a worker makes ahead


def batches_ahead(make: Callable[[int], Any], steps: range, n_workers: int = 1) -> Iterator[Any]:
    """Batches of some steps in order, made by `n_workers` processes (0: in this one).

    An error of `make` is raised with the batch that it belongs to.
    """
    # fork: the workers share the decoded audio with this process instead of copying it
    how: dict[str, Any] = {"num_workers": n_workers, "collate_fn": make}  # of each step
    if n_workers:
        how |= {"prefetch_factor": _AHEAD, "multiprocessing_context": "fork"}
    own = torch.Generator()  # else it draws from the one that networks draw from
    return iter(DataLoader(cast(Any, steps), None, generator=own, **how))


# ---- Checkpoints of a training: written atomically, the last few kept, never of another training.


def save_atomically(path: Path, state: object) -> None:
    """Save by torch.save beside `path`, then rename."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    with atomic_write(path, "wb") as stream:
        stream.write(buffer.getbuffer())


@dataclass(frozen=True)
class Checkpoints:
    """Files step-<number>.pt in a folder; `identity` says to which training they belong."""

    folder: Path
    identity: str
    keep: int

    def _steps(self) -> list[Path]:
        return sorted(self.folder.glob("step-*.pt"))

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write one, then remove the oldest beyond `keep`."""
        known = {**state, "identity": self.identity}
        save_atomically(self.folder / f"step-{step:08d}.pt", known)
        for old in self._steps()[: -self.keep]:
            old.unlink()

    def load_last(self) -> dict[str, Any] | None:
        """State of the last one, None without one; UserError when it belongs to another run."""
        if not (paths := self._steps()):
            return None
        state = load_state(paths[-1])
        if state.get("identity") == self.identity:
            return state
        why = "of a training with other settings, seed or data"
        raise UserError(f"{paths[-1]}: {why}; remove {self.folder} to begin anew")


# ---- One training loop for all networks: steps, log, validation, checkpoints, resuming, the best.
#
# A network is trained by a `Trainer`: a model, a loss and a data set. All randomness in a step is a
# function of (seed, step), or torch's, whose state checkpoints keep (dropout), so that a training
# that was stopped and resumed ends with the same network, to the bit, on the same machine.

PROGRESS = ("step", "cpu_seconds", "sums", "rows", "best")  # of a checkpoint


class Trainer(ABC):
    """Network under training.

    plan: settings of the loop. network: the trained one. saved: names of the attributes that have a
    state (networks, optimisers, schedules). best_by: the figure of `validate` that is least for the
    best network; empty without one.
    """

    plan: Any  # LoopSettings, and settings of the loss
    seed: int
    device: str
    network: Any  # nn.Module
    saved: tuple[str, ...] = ("network", "optimiser")
    best_by = ""

    def batch(self, step: int) -> Any:
        """Data of a step, a function of (seed, step); may be made ahead in other processes."""
        return None

    @abstractmethod
    def update(self, step: int, batch: Any) -> dict[str, float]:
        """Take step 0, 1, ...; returns its losses by name, for the log."""

    def validate(self) -> dict[str, float]:
        """Figures of the network as it is now; none if nothing is held out."""
        return {}

    def weights(self) -> dict[str, Tensor]:
        """Content of final.pt."""
        return dict(self.network.state_dict())

    def learn(self, step: int) -> dict[str, float]:
        """Take a step with its batch."""
        return self.update(step, self.batch(step))

    def state(self) -> dict[str, Any]:
        """State that a resumed training needs."""
        of_device = torch.cuda.get_rng_state_all() if self.device == "cuda" else []
        random = [torch.get_rng_state(), *of_device]
        return {"random": random, **{name: getattr(self, name).state_dict() for name in self.saved}}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        for name in self.saved:
            getattr(self, name).load_state_dict(state[name])
        if random := state.get("random"):  # older checkpoints have none
            torch.set_rng_state(random[0])
            torch.cuda.set_rng_state_all(random[1:])


@dataclass
class Training:
    """State of a training: its position, its cost, its table.

    sums: of each loss since the last row, and their number. rows: of training.tsv. best: `figure`,
    `step` and, if the settings keep the best, `weights` of the best validation.
    """

    trainer: Trainer
    out: Path
    checkpoints: Checkpoints
    step: int = 0
    cpu_seconds: float = 0.0  # of this process, over all runs
    sums: dict[str, tuple[float, int]] = field(default_factory=dict)
    rows: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, Any] | None = None

    def resume(self) -> None:
        """Resume from the last checkpoint, if there is one."""
        if (state := self.checkpoints.load_last()) is None:
            return
        for name in PROGRESS:
            setattr(self, name, state["progress"][name])
        if self.step > self.trainer.plan.steps:
            raise UserError(
                f"{self.out}: training.steps: {self.trainer.plan.steps}, but it is at step "
                f"{self.step}; remove {self.checkpoints.folder} to begin anew"
            )
        self.trainer.restore(state["trainer"])
        logging.info("resumed at step %d", self.step)

    def run(self, n_workers: int) -> None:
        """Take all remaining steps; n_workers processes make batches."""
        plan: LoopSettings = self.trainer.plan
        first, started = self.step, time.monotonic()
        cpu_before = self.cpu_seconds - time.process_time()
        batches = batches_ahead(self.trainer.batch, range(first, plan.steps), n_workers)
        while self.step < plan.steps and not self._is_hopeless():
            self._update(next(batches))
            self.cpu_seconds = cpu_before + time.process_time()
            last = self.step == plan.steps
            if last or not (self.step % plan.log_every and self.step % plan.valid_every):
                self._report((self.step - first) / (time.monotonic() - started))
            if last or self.step % plan.checkpoint_every == 0:
                progress = {name: getattr(self, name) for name in PROGRESS}
                state = {"trainer": self.trainer.state(), "progress": progress}
                self.checkpoints.save(self.step, state)

    def _update(self, batch: Any) -> None:
        for name, value in self.trainer.update(self.step, batch).items():
            if not math.isfinite(value):
                raise UserError(
                    f"{self.out}: {name} is {value} at step {self.step}: the training has "
                    "failed; a smaller training.learning_rate may help"
                )
            total, n = self.sums.get(name, (0.0, 0))
            self.sums[name] = total + value, n + 1
        self.step += 1

    def _report(self, speed: float) -> None:
        """Write a line of the log and a row of the table; validate when it is time."""
        plan = self.trainer.plan
        losses = {name: total / n for name, (total, n) in self.sums.items()}
        self.sums = {}
        said = ", ".join(f"{name} {value:.4f}" for name, value in losses.items())
        logging.info(
            f"step {self.step} of {plan.steps}: {said}; {speed:.2f} steps/s, "
            f"{(plan.steps - self.step) / speed:.0f} s left"
        )
        row = {"step": self.step, "cpu_seconds": round(self.cpu_seconds, 1), **losses}
        if self.step % plan.valid_every == 0 or self.step == plan.steps:
            row |= self._validate()
        self.rows.append(row)
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        cells = ([f"{r[name]:.6g}" if name in r else "" for name in names] for r in self.rows)
        write_timed(self.out / "training.tsv", names, cells)

    @torch.no_grad()
    def _validate(self) -> dict[str, float]:
        figures = self.trainer.validate()
        figure = figures.get(self.trainer.best_by, math.nan)
        if figure < (math.inf if self.best is None else self.best["figure"]):
            self.best = {"figure": figure, "step": self.step}
            if self.trainer.plan.keep == "best":
                weights = self.trainer.weights()
                self.best["weights"] = {name: value.clone() for name, value in weights.items()}
        return figures

    def _is_hopeless(self) -> bool:
        """Whether no validation was better for as long as `patience` allows."""
        patience, of = self.trainer.plan.patience, self.trainer.best_by
        if not patience or self.best is None:
            return False
        since = sum(of in row and row["step"] > self.best["step"] for row in self.rows)
        if since >= patience:
            logging.info("no better validation since step %d: ends early", self.best["step"])
        return bool(since >= patience)

    def finish(self, name: str, settings: dict[str, Any], **known: object) -> None:
        """Write the settings with data of the training to the file `name`, then final.pt.

        If the best is to be kept, but no validation found it, the last is kept.
        """
        kept, step, weights = "final", self.step, self.trainer.weights()
        if self.trainer.plan.keep == "best":
            if self.best is None:
                logging.warning("training.keep: no validation told which is best: the last is kept")
            else:
                kept, step, weights = "best", self.best["step"], self.best["weights"]
        trained = {
            "step": step,
            "kept": kept,
            "seed": self.trainer.seed,
            "device": self.trainer.device,
            "parameters": count_parameters(self.trainer.network),
            **known,
        }
        write_settings(self.out / name, settings, trained=trained)
        save_atomically(self.out / "final.pt", {name: part.cpu() for name, part in weights.items()})
        logging.info(
            f"done: {self.out / 'final.pt'} (step {step}, {self.cpu_seconds:.1f} s of CPU time "
            "without workers)"
        )


def train(trainer: Trainer, out: Path, identity: str, n_workers: int = 0) -> Training:
    """Train from the last checkpoint in out/checkpoints on; `out` gets training.tsv.

    identity: of `settings.identity`. UserError where a loss is not a number, and for checkpoints of
    another training. `Training.finish` writes the rest.
    """
    size = count_parameters(trainer.network) / 1e6
    logging.info("network: %.2f M parameters on %s", size, trainer.device)
    keep = trainer.plan.keep_checkpoints
    training = Training(trainer, out, Checkpoints(out / "checkpoints", identity, keep))
    training.resume()
    (out / "final.pt").unlink(missing_ok=True)
    training.run(n_workers)
    return training


def count_parameters(network: nn.Module) -> int:
    """Number of trained values."""
    return sum(parameter.numel() for parameter in network.parameters())


def descend(
    loss: Tensor,
    optimiser: torch.optim.Optimizer,
    parameters: Iterable[Tensor] = (),
    gradient_norm: float = math.inf,
) -> float:
    """Take one step of the optimiser down `loss`, which is returned as a number.

    The joint gradient of `parameters` is clipped to `gradient_norm`.
    """
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    if gradient_norm < math.inf:
        nn.utils.clip_grad_norm_(parameters, gradient_norm)
    optimiser.step()
    return float(loss.detach())


def learning_rate(config: Any, step: int) -> float:
    """Learning rate: linear rise to `learning_rate` over the part `warm_up` of all steps, then half
    a cosine down to `final_rate`."""
    n_warm = max(1, round(config.warm_up * config.steps))
    if step < n_warm:
        return float(config.learning_rate * (step + 1) / n_warm)
    progress = (step - n_warm) / max(1, config.steps - n_warm)
    cosine = 0.5 * (1 + math.cos(math.pi * progress))
    return config.final_rate + (config.learning_rate - config.final_rate) * cosine


def cyclic_rate(config: Any, step: int) -> float:
    """Learning rate: linear rise from `final_rate` to `learning_rate` over `half_cycle` steps and
    fall over as many, again and again (SpeechBrain's CyclicLRScheduler)."""
    place = (step + 1) / config.half_cycle % 2
    return config.final_rate + (config.learning_rate - config.final_rate) * (1 - abs(1 - place))


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Set the rate of the next step."""
    for group in optimiser.param_groups:
        group["lr"] = rate
