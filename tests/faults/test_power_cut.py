"""The power is cut at every point of every flow, on the file system that shows what was not flushed.

Twice at each point: with what the device holds at that moment, and after the journal was written (which the
system does by itself every few seconds). After it comes back nothing is gone, empty or half there, and a
second try ends as an undisturbed run. What was answered stays. `MEMD_FULL_SWEEPS=1` tries every point,
otherwise a few of each flow.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import support_points
from memd import disk
from support_flow import Flow
from support_flows import FLOWS
from support_ledger_faults import LedgerFaults
from support_power import Device, why_not
from support_scratch import in_memory

pytestmark = pytest.mark.faults

CUTS = 10_000 if os.environ.get("MEMD_FULL_SWEEPS") else 5


@pytest.fixture
def device() -> Iterator[Device]:
    folder = Path(tempfile.mkdtemp(prefix="memd-power-"))
    reason = why_not(folder / "try")
    if reason:
        shutil.rmtree(folder)
        pytest.skip(reason)
    made = Device(folder / "device")
    try:
        yield made
    finally:
        if os.path.ismount(made.mounted):
            made.unmount()
        shutil.rmtree(folder)


Cut = tuple[Path, list[object]]


def cuts(device: Device, flow: Flow, *, is_committed: bool) -> list[Cut]:
    """What the device holds at some points of the work and, last, right after its answer; and what the world
    had of it by then."""
    images: list[Cut] = []

    def take(name: str) -> None:
        images.append((device.image.with_name(name), list(flow.memory())))
        device.cut(images[-1][0])

    def cut(number: int) -> None:
        if number % stride == 0:
            if is_committed:
                device.commit()
            take(f"cut-{number}.img")

    os.sync()
    total = len(_calls(flow))
    stride = max(1, total // CUTS)
    with flow.under(LedgerFaults(each=cut, is_flushing=True)):
        flow.work()
    take("answered.img")
    return images


def _calls(flow: Flow) -> list[str]:
    """Those of another flow of the same kind, elsewhere."""
    with tempfile.TemporaryDirectory(dir=in_memory()) as top:
        other = type(flow)(Path(top) / "count")
        faults = LedgerFaults()
        with other.under(faults):
            other.work()
        return faults.calls


@pytest.mark.parametrize("is_committed", [False, True], ids=["at once", "journal written"])
@pytest.mark.parametrize("name", FLOWS)
def test_what_a_power_cut_leaves_is_whole_and_gone_on_with(
    device: Device, name: str, is_committed: bool
) -> None:
    flow = FLOWS[name](device.mounted / "scene")
    images = cuts(device, flow, is_committed=is_committed)
    device.unmount()
    for image, memory in images:
        with device.after(image):
            flow.memory()[:] = memory
            flow.restart()
            flow.check_kept()
            with flow.under(LedgerFaults()):
                if image.name == "answered.img":
                    flow.check_answered()
                    flow.after_answer()
                else:
                    flow.recover()
                flow.check_done()
        support_points.tried()
    device.mount()


def without(what: str) -> Callable[[int], None]:
    def flush(fd: int) -> None:
        is_folder = os.path.isdir(f"/proc/self/fd/{fd}")
        if (what == "folders") != is_folder:
            os.fsync(fd)

    return flush


def test_the_cut_shows_a_flush_that_is_left_out(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the sweep above would prove nothing."""
    path = bytes(device.mounted / "state/file")
    disk.replace_file(path, b"old")
    os.sync()
    seen = {}
    for what in ("files", "folders"):
        monkeypatch.setattr(disk, "flush", without(what))
        disk.replace_file(path, b"new")
        if what == "files":
            device.commit()
        image = device.image.with_name(f"{what}.img")
        device.cut(image)
        device.unmount()
        with device.after(image):
            seen[what] = disk.read_file(path, 100)
        device.mount()
        monkeypatch.undo()
        disk.replace_file(path, b"old")
        os.sync()
    assert seen == {"files": b"", "folders": b"old"}
