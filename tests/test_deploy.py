"""Images, compose file, workflows, releases stay true: what they name exists, nothing is open."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import pythons, release_notes
from searchloop.agent import __version__ as VERSION
from searchloop.cli.main import parse
from searchloop.compose import every_setting
from searchloop.web.app import LEAVE_SECONDS
from searchloop.web.gate import OPEN_PATHS
from searchloop.web.listen import PORT, STOP_SECONDS
from tests.fakes import FakeServer, json_reply
from tests.tables import each_row

ROOT = Path(__file__).resolve().parents[1]
IMAGE = (ROOT / "Containerfile").read_text("utf-8")
IGNORED = (ROOT / ".dockerignore").read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The compose file."""
    read: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    return read


def test_what_the_image_copies_exists_and_is_sent() -> None:
    """Each COPY names a file of the project that the ignore file lets through."""
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", IMAGE, re.MULTILINE)
        for name in line.split()
    ]
    assert {"requirements.lock", "agent", "cli", "search_backend", "web"} <= set(copied)
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert IGNORED[0] == "*"
    assert [name for name in copied if f"!{name}" not in IGNORED] == []
    assert "!.env" not in IGNORED


def test_every_package_of_the_image_is_hashed() -> None:
    """What is taken from an index is pinned and hashed; what is not stands in the image already;
    and the optional packages are in the lock that they are taken from."""
    installs = re.findall(r"(?:/bin/)?pip install((?:[^&\n]|\\\n)*)", IMAGE)
    assert len(installs) == 2
    for words in installs:
        assert "--require-hashes" in words or "--no-index" in words
    kept = re.search(r"keep = /\^\(([\w|-]+)\)==/", IMAGE)
    assert kept
    lock = (ROOT / "requirements-dev.lock").read_text("utf-8")
    for name in kept[1].split("|"):
        assert re.search(rf"^{name}==\S+.*\\\n +--hash=sha256:", lock, re.MULTILINE), name


def test_the_image_runs_as_nobody_and_asks_the_open_address() -> None:
    """No root, no token in the health check, the usual port, an address that needs none, and a
    command that the program has."""
    assert re.search(r"^USER 10001:10001$", IMAGE, re.MULTILINE)
    asked = re.search(r"http://127\.0\.0\.1:(\d+)(/[\w/]+)", IMAGE)
    assert asked
    assert (int(asked[1]), asked[2] in OPEN_PATHS) == (PORT, True)
    command = re.search(r'^CMD \["(.+)"\]$', IMAGE, re.MULTILINE)
    assert command
    args = parse(command[1].split('", "'))
    assert (args.command, args.host, args.port) == ("serve", "0.0.0.0", PORT)


def test_services_are_closed(compose: dict[str, Any]) -> None:
    """Read-only, no capabilities, no new privileges; one port, for this machine alone; the database
    has no way out; and no secret stands in the file."""
    services = compose["services"]
    assert set(services) == {"app", "postgres", "searxng", "ollama"}
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert published == [f"127.0.0.1:{PORT}:{PORT}"]
    assert services["postgres"]["networks"] == ["inside"]
    assert compose["networks"]["inside"]["internal"] is True
    assert services["app"]["env_file"] == "server.env"
    plain = " ".join(str(s.get("environment", "")) for s in services.values())
    assert not re.search(r"PASSWORD|TOKEN|KEY|://\w+:\w+@", plain)


def test_images_are_pinned_and_watched(compose: dict[str, Any]) -> None:
    """No image moves under a server: each names a version; and each service is asked for health.
    SIGTERM begins a stop, and nobody is killed before requests have ended and runs changed hands.
    """
    services = compose["services"].values()
    images = [s["image"] for s in services if "image" in s]
    images += re.findall(r"^FROM (\S+)", IMAGE, re.MULTILINE)
    assert [image for image in images if not re.search(r":\d+\.\d+", image)] == []
    own = [name for name, s in compose["services"].items() if "healthcheck" not in s]
    assert own == ["app"]
    assert "HEALTHCHECK" in IMAGE
    assert re.search(r"^STOPSIGNAL SIGTERM$", IMAGE, re.MULTILINE)
    grace = float(compose["services"]["app"]["stop_grace_period"].removesuffix("s"))
    assert grace > STOP_SECONDS + LEAVE_SECONDS


def test_the_health_check_of_the_image_works() -> None:
    """Its very command: well with a server that is there, ill with one that is not."""
    (command,) = re.findall(r"^ +CMD (\[.+\])$", IMAGE, re.MULTILINE)
    program, *words = json.loads(command)
    assert program == "python"
    with FakeServer(
        lambda received: json_reply({}, 200 if received.path in OPEN_PATHS else 404)
    ) as up:
        codes = []
        for port in (up.port, 1):
            asked = [word.replace(f":{PORT}/", f":{port}/") for word in words]
            done = subprocess.run([sys.executable, *asked], capture_output=True, check=False)
            codes.append(done.returncode)
    assert [bool(code) for code in codes] == [False, True]


def test_settings_named_exist(compose: dict[str, Any]) -> None:
    """Every setting that the image or the app's service names is one of ours; volumes and networks
    that a service uses are declared.
    """
    for service in compose["services"].values():
        assert set(service.get("networks", ())) <= set(compose["networks"])
        volumes = {v.partition(":")[0] for v in service.get("volumes", ()) if v[0] not in "./"}
        assert volumes <= set(compose["volumes"])
    known = {name for s in every_setting() for name in (s.name, *s.aliases)}
    named = set(compose["services"]["app"]["environment"])
    named |= set(re.findall(r"\b(SEARCHLOOP_\w+)=", IMAGE))
    assert named - known == set()
    home = compose["services"]["app"]["environment"]["SEARCHLOOP_HOME"]
    assert compose["services"]["app"]["volumes"] == [f"data:{home}"]
    assert f"SEARCHLOOP_HOME={home}" in IMAGE


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_every_action_is_pinned_by_its_commit() -> None:
    """A tag of somebody else's can move; what it stands for is said beside it."""
    used = [u for path in WORKFLOWS for u in re.findall(r"uses: (.+)", path.read_text("utf-8"))]
    assert len(used) > 5
    pinned = re.compile(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [u for u in used if not pinned.fullmatch(u)] == []


def test_every_supported_python_is_tested() -> None:
    """The package, the workflow and the script name the same ones; this one is found."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [c.rpartition(" :: ")[2] for c in project["classifiers"] if "Python :: 3." in c]
    matrix = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    tested = matrix["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert list(pythons.SUPPORTED) == named == tested
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in pythons.found()
    assert [path for path in pythons.SAMPLE if not (ROOT / path).exists()] == []


CHANGES = "# Changelog\n\n## [1.1.0] - 2026-11-22\n\n- New.\n\n## [1.0.0] - 2026-01-02\n\n- Old.\n"


def test_the_notes_of_a_release_are_its_section() -> None:
    """And nothing of another one, first or last. Ours can be cut so; the date comes last."""
    assert release_notes.notes("v1.1.0", "1.1.0", CHANGES) == "- New."
    assert release_notes.notes("v1.0.0", "1.0.0", CHANGES) == "- Old."
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8").replace("unreleased", "2026-11-22")
    assert len(release_notes.notes(f"v{VERSION}", VERSION, changes)) > 100


@each_row(
    ("tag", "version", "text", "says"),
    [
        ("v1.2.0", "1.1.0", CHANGES, "pyproject.toml says 1.1.0"),
        ("1.1.0", "1.1.0", CHANGES, "The tag is 1.1.0"),
        ("v1.2.0", "1.2.0", CHANGES, "no section"),
        ("v1.1.0", "1.1.0", CHANGES.replace("2026-11-22", "unreleased"), "no date"),
        ("v1.1.0", "1.1.0", CHANGES.replace("- New.\n", ""), "says nothing"),
    ],
)
def test_a_release_that_does_not_fit_is_not_made(
    tag: str, version: str, text: str, says: str
) -> None:
    """A tag of another version, no section, no date, no words."""
    with pytest.raises(ValueError, match=says):
        release_notes.notes(tag, version, text)


def test_the_mcp_registry_gets_what_it_wants() -> None:
    """A reverse-DNS name that README proves, a short description, the version of the package."""
    told = json.loads((ROOT / "server.json").read_text("utf-8"))
    package = told["packages"][0]
    assert re.fullmatch(r"[a-z0-9.-]+(?:\.[a-z0-9-]+)+/[\w.-]+", told["name"])
    assert f"<!-- mcp-name: {told['name']} -->" in (ROOT / "README.md").read_text("utf-8")
    assert len(told["description"]) <= 100
    assert (told["version"], package["version"]) == (VERSION, VERSION)
    assert package["identifier"] == "searchloop"
    said = [each["value"] for each in package["packageArguments"]]
    assert said == ["mcp", "serve"]
