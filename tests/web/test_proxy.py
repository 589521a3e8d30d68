"""People behind a real proxy: the nginx file of docs/guides/deploy.md and a real server."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import skip_without
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
NAME = "chat.example.org"
PASSWORDS = {"anna": "sesame one", "bob": "sesame two"}
DOCUMENT = (ROOT / "docs" / "guides" / "deploy.md").read_text("utf-8").partition("\n## People\n")[2]


def configuration(folder: Path, port: int, behind: int) -> str:
    """The block of the document, on ports of ours and without TLS."""
    text, programs = re.findall(r"```nginx\n(.+?)```", DOCUMENT, re.S)
    text = text.replace("  location / {", f"{programs}  location / {{")
    for old, new in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("/etc/nginx/searchloop.users", str(folder / "users")),
        ("127.0.0.1:8321", f"127.0.0.1:{behind}"),
    ):
        assert old in text
        text = text.replace(old, new)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    mine = "user root;\n" if os.geteuid() == 0 else ""  # the folder is its owner's alone
    return (
        f"{mine}daemon off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{text}}}\n"
    )


@contextmanager
def program(command: list[str], folder: Path, **env: str) -> Iterator[Any]:
    """A program in its own process, stopped at the end."""
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    kept = {"PATH": "/usr/sbin:/usr/bin:/bin", "PYTHONPATH": str(ROOT), **env}
    with subprocess.Popen(command, cwd=folder, env=kept, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.terminate()


class Site:
    """What people reach: the proxy's port, and the server's own behind it."""

    def __init__(self, port: int, behind: int) -> None:
        self.port, self.behind = port, behind

    def ask(
        self, method: str, path: str, person: str = "", body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """A request with a person's password, and further headers."""
        sent = {"Host": NAME, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if person:
            pair = b64encode(f"{person}:{PASSWORDS[person]}".encode()).decode()
            sent["Authorization"] = f"Basic {pair}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)) as client:
            client.request(method, path, body and json.dumps(body), sent)
            response = client.getresponse()
            raw = response.read()
            known = response.headers.get("Content-Type", "").startswith("application/json")
            return response.status, json.loads(raw) if known else raw

    def up(self) -> bool:
        """Whether the proxy answers."""
        try:
            return self.ask("GET", "/api/health", "anna")[0] == 200
        except OSError:
            return False


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A real server behind a real nginx."""
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if nginx is None:
        skip_without("nginx")
    folder = tmp_path_factory.mktemp("proxy")
    folder.chmod(0o711)
    lines = [f"{name}:{{PLAIN}}{password}\n" for name, password in PASSWORDS.items()]
    (folder / "users").write_text("".join(lines))
    serve = [sys.executable, "-m", "searchloop.cli", "serve", "--port", "0"]
    settings = {
        "SEARCHLOOP_HOME": str(folder / "home"),
        "SEARCHLOOP_OFFLINE": "1",
        "SEARCHLOOP_USER_HEADER": "X-Forwarded-User",
        "SEARCHLOOP_ADMINS": "bob",
        "SEARCHLOOP_PUBLIC_URL": f"https://{NAME}",
        "SEARCHLOOP_TOKEN": "a token that nobody here has",
        "PYTHONUNBUFFERED": "1",
    }
    # The line names the public address, so the port is taken from the health of a fixed one.
    behind, port = free_port(), free_port()
    serve[-1] = str(behind)
    with program(serve, folder, **settings) as server:
        assert "is running at" in server.stdout.readline()
        (folder / "nginx.conf").write_text(configuration(folder, port, behind))
        start = [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
        with program(start, folder) as proxy:
            made = Site(port, behind)
            until(lambda: made.up() or proxy.poll() is not None)
            assert proxy.poll() is None, proxy.stdout.read()
            yield made


def test_the_proxy_signs_people_in(site: Site) -> None:
    """Without a password nothing is shown; with one, the person and their own chats."""
    assert site.ask("GET", "/api/sessions")[0] == 401
    for name in PASSWORDS:
        assert site.ask("GET", "/api/me", name)[1]["name"] == name
        assert site.ask("POST", "/api/sessions", name, {})[0] == 201
        assert len(site.ask("GET", "/api/sessions", name)[1]["sessions"]) == 1


def test_nobody_names_themselves(site: Site) -> None:
    """The proxy replaces the header that a client sends, and its spellings are no other way in."""
    for header in ("X_Forwarded_User", "x_forwarded_user", "X_FORWARDED_USER"):
        assert site.ask("GET", "/api/me", "anna", **{header: "bob"})[1]["name"] == "anna"
        assert site.ask("GET", "/api/me", **{header: "bob"})[0] == 401
    assert site.ask("GET", "/api/usage", "anna")[0] == 403
    assert site.ask("GET", "/api/usage", "bob")[0] == 200


def test_an_answer_streams_through_the_proxy(site: Site) -> None:
    """A question is asked, and its events arrive while the stream stays open."""
    session = site.ask("POST", "/api/sessions", "anna", {})[1]["id"]
    asked = site.ask("POST", f"/api/sessions/{session}/messages", "anna", {"text": "What is it?"})
    assert asked[0] == 202
    pair = b64encode(f"anna:{PASSWORDS['anna']}".encode()).decode()
    headers = {"Host": NAME, "Authorization": f"Basic {pair}"}
    with closing(http.client.HTTPConnection("127.0.0.1", site.port, timeout=90)) as client:
        client.request("GET", f"/api/sessions/{session}/events", headers=headers)
        lines = client.getresponse()
        assert any(b'"run_finished"' in line for line in iter(lines.readline, b""))


def test_a_program_comes_with_its_key_and_names_nobody(site: Site) -> None:
    """It is its owner's; without a key, or by a header alone, nobody comes in."""
    key = site.ask("POST", "/api/programs", "anna", {"name": "editor"})[1]["key"]
    bearer = {"Authorization": f"Bearer {key}"}
    assert site.ask("GET", "/v1/models", **bearer)[0] == 200
    assert site.ask("GET", "/v1/models", **bearer, X_Forwarded_User="bob")[0] == 200
    for path in ("/v1/models", "/mcp", "/v1/../api/sessions"):
        assert site.ask("GET", path, X_Forwarded_User="bob")[0] == 401, path
    assert site.ask("GET", "/api/sessions", **bearer)[0] == 401  # the proxy's own
    names = [each["name"] for each in site.ask("GET", "/api/programs", "anna")[1]["programs"]]
    assert names == ["editor"]
    assert site.ask("GET", "/api/programs", "bob")[1] == {"programs": []}
