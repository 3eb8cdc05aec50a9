"""Filling a small file system to the last byte and the last name, and freeing it again."""

from __future__ import annotations

from pathlib import Path


def fill(place: Path, *, rest: int = 0) -> None:
    """Take every byte and every name there is, but for `rest` bytes."""
    filler = place / "filler"
    filler.mkdir()
    if rest:
        (filler / "rest").write_bytes(b"x" * rest)
    try:
        with (filler / "bytes").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
    except OSError:
        pass
    for number in range(1000):
        try:
            (filler / str(number)).touch()
        except OSError:
            break
    if rest:
        (filler / "rest").unlink()


def free(place: Path) -> None:
    for path in (place / "filler").iterdir():
        path.unlink()
    (place / "filler").rmdir()
