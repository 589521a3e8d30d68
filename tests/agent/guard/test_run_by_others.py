"""Files that other programs run ask each time, also where changes of their folder are allowed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from searchloop.agent.guard.approvals import WorkFile, folder_key
from searchloop.agent.search.source_numbers import SourceTable
from searchloop.agent.tools.dispatcher import Toolset
from searchloop.agent.tools.workspace import Workspace
from tests.agent.guard.guarding import guard, says, session
from tests.agent.scripted import Memory, call
from tests.tables import cut, each_row

RUN = (
    *(".bashrc", "home/.zshrc", ".config/fish/config.fish", "Documents/PowerShell/profile.ps1"),
    *(".vscode/tasks.json", "deep/in/.vscode/settings.json", ".idea/runConfigurations/a.xml"),
    *(".devcontainer/devcontainer.json", "a.code-workspace", ".vimrc", ".cursor/mcp.json"),
    *("hooks/pre-commit", ".husky/pre-push", ".gitattributes", ".pre-commit-config.yaml"),
    *(".github/workflows/ci.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile"),
    *("crontab", "cron.d/a", ".config/autostart/a.desktop", ".config/systemd/user/a.service"),
    *("package.json", "web/package-lock.json", "pyproject.toml", "setup.py", "conftest.py"),
    *("requirements-dev.txt", "Cargo.toml", "build.rs", "go.mod", "Gemfile", "pom.xml", "Makefile"),
    *("x/GNUmakefile", "justfile", "Dockerfile", "docker-compose.yml", "vite.config.ts", "a.pth"),
    *(".sqliterc", ".Rprofile", ".github/CODEOWNERS", ".aider.conf.yml", ".roo/rules/a.md"),
    *("QWEN.md", "opencode.json", "mcp.json", ".htaccess", ".user.ini", "turbo.json", "Tiltfile"),
    *("karma.conf.js", "jest.setup.js", "docs/conf.py", "mkdocs.yml", "phpunit.xml", "mvnw"),
    *("pylintrc", "mypy.ini", "rust-toolchain", "magefile.go", "docker-bake.hcl", "a/build.sh"),
    *("wrangler.toml", "a.mount", "config.ru", "Snakefile", "conda.lock", "x/bin/tool", "a.cmd"),
)
PLAIN = cut(
    """
    notes/a.md src/main.py a.txt make.md package.json.md test_a.py hooks/useTide.ts
    web/index.html src/app.tsx locales/en.json data/rows.csv style.css profile.md
    src/reconfigure.py workspaces.py a/shell.rs my-notes.ipynb
    """
)
DRESSES = {
    "as it is": str,
    "in capitals": str.upper,
    "with dots in the path": lambda path: f"./sub/../{path}",
    "with a sign that is not seen": lambda path: f"{path[:-1]}\u200b{path[-1]}",
    "with a dot behind": lambda path: f"{path}.",
    "with backslashes": lambda path: path.replace("/", "\\"),
}


def work_file(folder: Path, path: str) -> WorkFile:
    """What the guard sees of a call that changes this file of a workspace."""
    tool = changing(folder)["create_file"]
    file = WorkFile.of(tool, {"path": path}, lambda: session(workspace=str(folder)))
    assert file
    return file


@each_row("dress", DRESSES)
@each_row("path", RUN)
def test_they_are_known_however_they_are_written(path: str, dress: str, tmp_path: Path) -> None:
    """Upper case, dots and invisible signs hide nothing: some file systems drop them."""
    file = work_file(tmp_path, DRESSES[dress](path))
    assert file.why
    assert file.folder == ""
    assert not file.is_allowed({folder_key(str(tmp_path))})


@each_row("path", PLAIN)
def test_others_are_not(path: str, tmp_path: Path) -> None:
    """Notes and source code stay allowed with their folder, unless that folder is one of them."""
    file = work_file(tmp_path, path)
    assert (file.why, file.folder) == ("", str((tmp_path / path).parent))
    assert file.is_allowed({folder_key(str(tmp_path))})


@pytest.mark.parametrize("at", [".local/src/tide", ".config/x", "node_modules/tide", "bin/tide"])
def test_below_a_folder_of_programs_the_user_may_allow_a_folder(at: str, tmp_path: Path) -> None:
    """The card names the place; what other programs run in there asks each time all the same."""
    (work := tmp_path / at).mkdir(parents=True)
    file = work_file(work, "src/main.py")
    assert file.folder == str(work / "src")
    assert str(work) in file.why
    assert file.is_allowed({folder_key(str(work))})
    assert not file.is_allowed({folder_key(str(folder)) for folder in work.parents})
    for path in (".vscode/tasks.json", "Makefile", "/elsewhere/.x/a", "bin/run"):
        assert work_file(work, path).folder == ""
        assert not work_file(work, path).is_allowed({folder_key(str(work))})


@pytest.mark.parametrize("at", [".vscode", ".config", "bin", "node_modules", "tide/.github"])
def test_a_workspace_of_programs_is_never_allowed_as_a_whole(at: str, tmp_path: Path) -> None:
    """Whoever names such a folder is asked about each change in it."""
    (work := tmp_path / at).mkdir(parents=True)
    file = work_file(work, "tasks.txt")
    assert file.why
    assert not file.folder
    assert not file.is_allowed({folder_key(str(work))})


@each_row(
    ("path", "allowed", "may"),
    [
        ("src/new.txt", "ws/src", True),
        ("src/deep/new.txt", "ws/src", True),
        ("./src//new.txt", "ws/src", True),
        ("new.txt", "ws", True),
        ("new.txt", "ws/src", False),
        ("src2/new.txt", "ws/src", False),
        ("deep/src/new.txt", "ws/src", False),
        ("src/new.txt", "other/src", False),
        ("src/new.txt", "src", False),
        ("new.txt", "", False),
    ],
)
def test_an_allowed_folder_is_that_one_alone(
    path: str, allowed: str, may: bool, tmp_path: Path
) -> None:
    """What is below it is not asked about again; a folder of the same name elsewhere is."""
    file = work_file(tmp_path / "ws", path)
    assert file.folder == str((tmp_path / "ws" / path).parent)
    assert file.is_allowed({folder_key(str(tmp_path / allowed))}) is may


def changing(folder: Path) -> dict[str, Any]:
    """The tools of this workspace, by name."""
    made = asyncio.run(Workspace(folder / "home").tools(session(workspace=str(folder))))
    return {tool.spec.name: tool for tool in made}


@pytest.mark.parametrize("path", [".bashrc", ".vscode/tasks.json", "Makefile", "notes.md"])
def test_an_allowed_folder_does_not_allow_them(tmp_path: Path, path: str) -> None:
    """The card says who would run it, and offers to allow no folder."""
    (work := tmp_path / "work").mkdir()
    now = session(workspace=str(work))
    asked: list[Any] = []

    def no(request: Any) -> Any:
        asked.append(request)
        return says("deny")(request)

    allowed = guard(live=lambda: now, user=no, always=[folder_key(str(work))])
    toolset = Toolset(changing(work).values(), "agent", SourceTable(), guard=allowed)
    asyncio.run(toolset.call_all((call("create_file", path=path, content="x"),), Memory()))
    if path == "notes.md":
        assert not asked
        assert (work / path).read_text() == "x"
    else:
        [request] = asked
        assert Path(path).name in request["why"]
        assert request["folder"] == ""
        assert not (work / path).exists()
