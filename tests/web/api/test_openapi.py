"""The description of the page's API is true, held against the program that users start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import schemathesis

from tests.cli.conftest import CLEAN
from tests.openapi_sample import FEW, MANY, hold

TOKEN = "a-token-long-enough-0123"
# A stream has no end, and a form has no schema.
SKIP = ("GET /api/sessions/{id}/events",)


@pytest.mark.parametrize("examples", [FEW, MANY])
def test_requests_made_from_the_description(tmp_path: Path, examples: int) -> None:
    """No answer of class 5xx, none that is not described, no broken request taken for a good one,
    and no route that forgets the token."""
    env = {**CLEAN, "HOME": str(tmp_path), "SEARCHLOOP_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "searchloop.cli", "serve", "--port", "0"]
    env["SEARCHLOOP_TOKEN"] = TOKEN
    with subprocess.Popen(
        command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            base = line.partition(" at ")[2].split()[0].partition("/?")[0].rstrip("/")
            head = {"Authorization": f"Bearer {TOKEN}"}
            schema = schemathesis.openapi.from_url(f"{base}/api/openapi.json", headers=head)
            assert len(hold(schema, examples, TOKEN, SKIP)) > 15
        finally:
            process.terminate()
