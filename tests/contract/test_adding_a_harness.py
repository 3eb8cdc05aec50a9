"""The harness in `docs/adding-a-harness.md` is added as it stands there, and holds the contract."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memd.harness import hooking, launching, losses, model

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/adding-a-harness.md").read_text()
TYPES = {
    "Adapter": model.Adapter,
    "Store": model.Store,
    "Query": model.Query,
    "Launch": launching.Launch,
    "HookEvent": hooking.HookEvent,
    "Hooks": hooking.Hooks,
}


def modules() -> dict[str, str]:
    """The modules of the page, by their names."""
    found = re.findall(r"```python\n# daemon/memd/harness/(\w+\.py)\n(.*?)```", PAGE, re.DOTALL)
    assert len(found) == PAGE.count("```python")
    return dict(found)


def write_fixtures(root: Path) -> None:
    """Three sessions of the made-up program, each in a home of its own."""
    for number in range(3):
        name = f"7c0d5c1e-9999-4222-8333-{number:012d}"
        path = root / "quill" / f"scenario-{number}" / ".quill" / "sessions" / f"{name}.jsonl"
        path.parent.mkdir(parents=True)
        when = "2026-12-01T10:00:00Z"
        records: list[dict[str, object]] = [
            {"type": "session", "id": name, "cwd": "/home/dev/demo", "time": when},
            {"type": "system", "text": f"rules {number}"},
            {"type": "user", "id": f"u{number}", "text": f"ünïcødé {number} \u2028", "time": when},
            {"type": "thinking", "id": f"t{number}", "text": "SECRET"},
            {"type": "call", "id": f"c{number}", "text": 'shell: {"command":"ls"}', "time": when},
            {"type": "result", "id": f"r{number}", "text": "a.py", "time": when, "code": 0},
            {"type": "assistant", "id": f"a{number}", "text": f"done {number}", "usage": {"tokens": 3}},
            {"type": "user", "text": "without an id"},
        ]
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder from which test runs take the made-up harness in."""
    folder = tmp_path_factory.mktemp("added")
    (folder / "modules").mkdir()
    for name, text in modules().items():
        (folder / "modules" / name).write_text(text)
    write_fixtures(folder / "fixtures")
    (folder / "added_harness.py").write_text(
        "from pathlib import Path\n"
        "import memd.harness\n"
        "import support_adapters\n"
        f"memd.harness.__path__.append({str(folder / 'modules')!r})\n"
        f"support_adapters.FIXTURES = Path({str(folder / 'fixtures')!r})\n"
    )
    return folder


def test_the_harness_of_the_page_holds_the_contract(added: Path) -> None:
    path = os.pathsep.join(str(place) for place in (added, ROOT / "daemon", ROOT / "ctl", ROOT / "tests"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "added_harness", "-p", "no:cacheprovider", "-k", "quill",
         "tests/contract/test_adapters.py", "tests/contract/test_adapter_types.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 12


def test_it_is_found_started_and_read_without_another_edit(added: Path) -> None:
    script = (
        "import added_harness, os\n"
        "from memd.harness import registry\n"
        "from memd.workstream import launch\n"
        "from support_imports import readings\n"
        "adapter, _ = launch.chosen('Quill-CLI')\n"
        "(reading,) = readings(added_harness.support_adapters.FIXTURES / 'quill/scenario-1', 'quill')\n"
        "from memd.harness.launching import Intent\n"
        "argv = adapter.launch.compose(('--', 'x'), Intent(session='s', is_yolo=True))\n"
        "print([event.content for event in reading.events], dict(reading.losses()), argv.arguments)\n"
    )
    path = os.pathsep.join(str(place) for place in (added, ROOT / "daemon", ROOT / "ctl", ROOT / "tests"))
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == (
        "['ünïcødé 1 \\u2028', 'done 1', 'without an id'] "
        "{'system-prompt': 1, 'reasoning': 1, 'unknown-type': 2} ('--resume', 's', '--trust', '--', 'x')"
    ), done.stderr


def test_what_the_page_names_is_there() -> None:
    for kind, field in re.findall(r"`([A-Z][a-z]\w+)\.(\w+)`", PAGE):
        assert field in TYPES[kind].__struct_fields__, f"{kind}.{field}"
    for name in set(re.findall(r"`(?:harness/)?(\w+\.py)`", PAGE)) - set(modules()):
        assert (ROOT / "daemon/memd/harness" / name).is_file(), name
    for name in re.findall(r"`?(tests/[\w/]+(?:\.py)?)`?", PAGE):
        assert (ROOT / name).exists(), name
    for word in ("unknown-type", "reasoning", "system-prompt", "own-packet", "shortened"):
        assert word in losses.CLASSES


def test_the_example_is_short_and_written_like_the_rest() -> None:
    sizes = {name: len(text.splitlines()) for name, text in modules().items()}
    assert sizes.keys() == {"quill.py", "quill_launch.py"}
    assert sum(sizes.values()) <= 130
    assert max(len(line) for text in modules().values() for line in text.splitlines()) <= 110


def test_contributors_are_led_to_the_page() -> None:
    assert "docs/adding-a-harness.md" in (ROOT / "CONTRIBUTING.md").read_text()
