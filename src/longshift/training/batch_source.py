"""Where a step's samples come from: a pool on the device, or a stream from the host for data that does not fit."""

from __future__ import annotations

import queue
import threading
import warnings

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longshift.array_types import IntArray
from longshift.errors import LongshiftError
from longshift.methods import Batch
from longshift.rng import Draws, HostDraws
from longshift.training.inputs import Inputs, TrainingSet, draw_positions

Arrived = tuple[int, Tensor, Tensor, torch.cuda.Event | None]  # step, samples, labels, when the copies are done


class EvaluationSource:
    """Samples for evaluation: they stay on the host and move over in chunks."""

    def __init__(self, pool: Tensor, device: torch.device) -> None:
        self.pool, self.device = pool, device

    def rows(self, indices: IntArray) -> Tensor:
        """Stored samples, moved to the device."""
        return self.pool.index_select(0, torch.as_tensor(indices, device=self.pool.device)).to(self.device)


class Source(EvaluationSource):
    """Gives training batches and evaluation inputs."""

    def prepare(self, step: int) -> None:
        """Do the work on the host that the batch of `step` needs."""

    def batch(self, draws: Draws) -> Batch:
        """The batch of the current step; static shapes, no host work."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop background work."""


def host_tensor(inputs: npt.NDArray[np.generic]) -> Tensor:
    """A stored (perhaps memory-mapped, read-only) array as a tensor, without a copy; nobody writes to it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(inputs)


_RESIDENT: dict[tuple[str, torch.device], Tensor] = {}


def resident_pool(pool: Tensor, key: str, device: torch.device) -> Tensor:
    """The samples on the device; the last data set stays there, so that the next run on it need not copy again."""
    if device.type == "cpu":
        return pool
    if (key, device) not in _RESIDENT:
        _RESIDENT.clear()
        _RESIDENT[key, device] = pool.to(device)
    return _RESIDENT[key, device]


class ResidentSource(Source):
    """All samples on the device (on the CPU: the memory map itself)."""

    def __init__(self, pool: Tensor, train: TrainingSet, per_domain: int, inputs: Inputs, device: torch.device) -> None:
        super().__init__(pool, device)
        self.train, self.per_domain, self.inputs = train, per_domain, inputs
        self.indices = torch.as_tensor(train.indices, device=device)
        self.y = torch.as_tensor(train.y, device=device)

    def batch(self, draws: Draws) -> Batch:
        """Gather, augment, mix styles, normalize."""
        positions = draw_positions(self.train, self.per_domain, draws)
        stored = self.pool.index_select(0, self.indices.index_select(0, positions))
        return self.inputs.batch(stored, self.y.index_select(0, positions), self.train.domains, draws)


class StreamedSource(Source):
    """Samples stay on the host; a thread gathers coming batches into pinned memory and copies them ahead of time.

    Which samples a step sees depends on the seed and the step alone, so the thread can prepare them in advance.
    """

    def __init__(
        self,
        pool: Tensor,
        train: TrainingSet,
        per_domain: int,
        inputs: Inputs,
        device: torch.device,
        seed: int,
        ahead: int = 4,
    ) -> None:
        super().__init__(pool, device)
        self.train, self.per_domain, self.inputs, self.seed = train, per_domain, inputs, seed
        count = train.domains * per_domain
        self.stored = torch.zeros(count, *pool.shape[1:], dtype=pool.dtype, device=device)
        self.y = torch.zeros(count, dtype=torch.int64, device=device)
        self._indices, self._labels = torch.as_tensor(train.indices), torch.as_tensor(train.y)
        self._queue: queue.Queue[Arrived] = queue.Queue(ahead)
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._copies = torch.cuda.Stream(device=device) if device.type == "cuda" else None

    def _produce(self, step: int) -> None:
        try:
            self._stream_from(step)
        except BaseException as error:  # raised again in the training loop, which waits for samples
            self._failure = error
            self._stop.set()

    def _stream_from(self, step: int) -> None:
        draws = HostDraws(self.seed)
        while not self._stop.is_set():
            draws.begin(step)
            positions = draw_positions(self.train, self.per_domain, draws)
            rows, labels = self._indices[positions], self._labels[positions]
            item: Arrived
            if self._copies is None:
                item = (step, self.pool.index_select(0, rows), labels, None)
            else:
                pinned = torch.empty(self.stored.shape, dtype=self.pool.dtype, pin_memory=True)
                torch.index_select(self.pool, 0, rows, out=pinned)
                with torch.cuda.stream(self._copies):
                    stored = pinned.to(self.device, non_blocking=True)
                    moved = labels.pin_memory().to(self.device, non_blocking=True)
                    ready = torch.cuda.Event()
                    ready.record(self._copies)
                item = (step, stored, moved, ready)
            while not self._stop.is_set():
                try:
                    self._queue.put(item, timeout=0.2)
                    break
                except queue.Full:
                    continue
            step += 1

    def prepare(self, step: int) -> None:
        """Wait for the step's samples and put them where the step reads them."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._produce, args=(step,), daemon=True)
            self._thread.start()
        got, stored, y, ready = self._next()
        if got != step:
            raise RuntimeError(f"Expected samples of step {step}, got those of step {got}.")
        if ready is not None:
            current = torch.cuda.current_stream(self.device)
            current.wait_event(ready)
            stored.record_stream(current)
            y.record_stream(current)
        self.stored.copy_(stored, non_blocking=True)
        self.y.copy_(y, non_blocking=True)

    def _next(self) -> Arrived:
        while True:
            try:
                return self._queue.get(timeout=0.5)
            except queue.Empty:
                if self._failure is not None:
                    raise LongshiftError(f"reading the images failed: {self._failure}") from self._failure
                if self._thread is None or not self._thread.is_alive():
                    raise LongshiftError("the thread that reads the images ended without an error") from None

    def batch(self, draws: Draws) -> Batch:
        """Augment, style and normalize what `prepare` put in place."""
        draw_positions(self.train, self.per_domain, draws)  # keeps the draws of both sources in step
        return self.inputs.batch(self.stored, self.y.clone(), self.train.domains, draws)

    def close(self) -> None:
        """Stop the thread."""
        self._stop.set()
        while not self._queue.empty():
            self._queue.get_nowait()
        if self._thread is not None:
            self._thread.join(timeout=10)


def fits(pool: Tensor, device: torch.device) -> bool:
    """Whether the samples may live on the device: always on the CPU, on a GPU up to 0.4 of its free memory."""
    if device.type != "cuda":
        return True
    if any(where == device and kept.shape == pool.shape for (_, where), kept in _RESIDENT.items()):
        return True  # it is there already
    free, _ = torch.cuda.mem_get_info(device)
    return pool.numel() * pool.element_size() <= 0.4 * free
