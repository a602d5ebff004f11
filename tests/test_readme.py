"""The Python in the README and in CONTRIBUTING runs as written."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = [
    block
    for page in ("README.md", "CONTRIBUTING.md")
    for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
]


def test_there_is_something_to_run() -> None:
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[-1][:40])
def test_block_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "page", "exec"), {})
