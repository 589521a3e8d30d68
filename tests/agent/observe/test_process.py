"""What a process may take of its machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_ASKED = """
import json, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from searchloop.agent.observe.logs import be_a_server
be_a_server()
print(json.dumps(resource.getrlimit(resource.RLIMIT_NOFILE)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of open files are Unix's")
def test_a_server_asks_for_room_for_its_followers() -> None:
    """The usual 1,024 open files would end at the thousandth reader."""
    done = subprocess.run(
        [sys.executable, "-c", _ASKED], capture_output=True, text=True, check=True
    )
    soft, hard = json.loads(done.stdout)
    assert soft == 65_536 or soft == hard or hard < 0
    assert soft > 256
