"""Paths of file tools: no way out of the workspace, by no name, link, file kind or race."""

from __future__ import annotations

import os
import socket
import string
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchloop.agent.errors import ToolError
from searchloop.agent.tools.workspace.folders import Folder, PathFolder
from searchloop.agent.tools.workspace.paths import (
    change_diff,
    closed,
    matches_glob,
    new_file_diff,
    parts_of,
)
from searchloop.agent.tools.workspace.reading import list_directory, read_file, search_files
from searchloop.agent.tools.workspace.tree import Tree
from searchloop.analysis.secret_files import secret

SECRET = "canary-of-the-outside"
BOTH = pytest.mark.parametrize("folder", [Folder, PathFolder])


def make(tmp_path: Path, folder: type[Folder] = Folder) -> Tree:
    """A workspace beside a file that must not be reached."""
    root = tmp_path / "ws"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("print('hello')\n")
    (root / "notes.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "ws-evil" / "secret.txt").write_text(SECRET)
    return Tree(str(root), folder=folder)


def code_of(tree: Tree, path: str) -> str:
    """The code of the refusal to read this."""
    with pytest.raises(ToolError) as caught:
        read_file(tree, {"path": path})
    assert caught.value.message
    return caught.value.code


@BOTH
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../outside/secret.txt", "bad_path"),
        ("src/../../outside/secret.txt", "bad_path"),
        ("src/..", "bad_path"),
        ("..", "bad_path"),
        ("/etc/passwd", "outside_workspace"),
        ("ROOT-evil/secret.txt", "outside_workspace"),
        ("ROOT/../outside/secret.txt", "bad_path"),
        ("..\\outside\\secret.txt", "bad_path"),
        ("ROOT/notes.txt", "bad_path"),
        ("ROOT", "outside_workspace"),
        ("notes.txt\0.png", "bad_path"),
        ("notes\n.txt", "bad_path"),
        ("\ud800", "bad_path"),
        ("a/" * 70 + "b", "bad_path"),
        ("x" * 300, "bad_path"),
        ("~/secret.txt", "no_such_file"),
        ("%2e%2e/outside/secret.txt", "no_such_file"),
        ("", "wrong_kind"),
        (".", "wrong_kind"),
        ("src", "wrong_kind"),
        ("notes.txt/x", "wrong_kind"),
        ("gone.txt", "no_such_file"),
        (".git/config", "closed_path"),
        (".GIT/config", "closed_path"),
        ("src/.g\u200cit/config", "closed_path"),
        (".env", "secret_file"),
        ("src/.ENV.production", "secret_file"),
        ("keys/id_rsa", "secret_file"),
        (".ssh/known_hosts", "secret_file"),
        ("server.pem", "secret_file"),
    ],
)
def test_paths_that_are_refused(tmp_path: Path, folder: type[Folder], path: str, code: str) -> None:
    """Each is named and explained, and says nothing of what is outside."""
    tree = make(tmp_path, folder)
    assert code_of(tree, path.replace("ROOT", tree.root)) == code


@BOTH
def test_links_and_special_files(tmp_path: Path, folder: type[Folder]) -> None:
    """No link is followed, at the end or on the way; pipes, sockets and devices are no files."""
    tree = make(tmp_path, folder)
    root = Path(tree.root)
    (root / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (root / "inner.txt").symlink_to("notes.txt")
    (root / "dir").symlink_to(tmp_path / "outside")
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    os.link(tmp_path / "outside" / "secret.txt", root / "hard.txt")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        old = Path.cwd()
        os.chdir(root)  # the name of a socket must be short
        try:
            listener.bind("sock")
        finally:
            os.chdir(old)
        assert code_of(tree, "sock") == "wrong_kind"
    for name in ("link.txt", "inner.txt", "dir/secret.txt", "up/outside/secret.txt", "loop"):
        assert code_of(tree, name) == "link_refused"
    assert code_of(tree, "hard.txt") == "linked_file"
    assert code_of(tree, "pipe") == "wrong_kind"
    listed, _ = list_directory(tree, {"depth": 5})
    assert "dir (link, not usable)" in listed
    found, _ = search_files(tree, {"text": "canary"})
    assert found == "Nothing found."
    assert SECRET not in listed


@BOTH
def test_files_are_written_either_way(tmp_path: Path, folder: type[Folder]) -> None:
    """Made, changed and removed, with and without descriptors; never over what is newer."""
    tree = make(tmp_path, folder)
    root = Path(tree.root)
    tree.create(("new", "er", "a.txt"), b"one")
    first = tree.read(("new", "er", "a.txt"))
    tree.replace(first, b"three")
    for stale in (lambda: tree.replace(first, b"two"), lambda: tree.remove(first)):
        with pytest.raises(ToolError, match="changed meanwhile"):
            stale()
    for taken in (("new", "er", "a.txt"), ("new",)):
        with pytest.raises(ToolError, match="already something"):
            tree.create(taken, b"x")
    (root / "out").symlink_to(tmp_path / "outside")
    with pytest.raises(ToolError, match="is a link"):
        tree.create(("out", "x.txt"), b"x")
    assert (root / "new" / "er" / "a.txt").read_bytes() == b"three"
    assert [path.name for path in (root / "new" / "er").iterdir()] == ["a.txt"]
    tree.remove(tree.read(("new", "er", "a.txt")))
    tree.remove_folder(("new",))
    assert (root / "new").exists()
    tree.remove_folder(("new", "er"))
    tree.remove_folder(("new",))
    assert not (root / "new").exists()
    assert {path.name for path in (tmp_path / "outside").iterdir()} == {"secret.txt"}


def test_a_workspace_that_is_gone(tmp_path: Path) -> None:
    """A folder that was removed, or replaced by a link, is no workspace any more."""
    tree = make(tmp_path)
    os.rename(tree.root, tmp_path / "moved")
    assert code_of(tree, "notes.txt") == "no_workspace"
    os.symlink(tmp_path / "outside", tree.root)
    assert code_of(tree, "secret.txt") == "no_workspace"


def test_names_that_windows_would_take_for_something_else() -> None:
    """Devices, streams, short names and trailing dots, as Windows reads them."""
    for path in ("CON", "nul.txt", "src/COM1.log", "a:stream", "C:/Windows/x", "dot.", "q?.txt"):
        with pytest.raises(ToolError):
            parts_of(path, "C:\\ws", windows=True)
    assert parts_of("src\\main.py", "C:\\ws", windows=True) == ("src", "main.py")
    with pytest.raises(ToolError, match=r"'a\.txt'"):
        parts_of("c:/WS/a.txt", "C:\\ws", windows=True)
    assert all(closed((name, "config")) for name in ("GIT~1", ".Bzr", "．git", ".gi\u200ct "))


NAMES = st.text(alphabet=string.ascii_letters + "._-~ \\\u200c\u0301é\n\0", max_size=8)
PATHS = st.lists(st.one_of(NAMES, st.sampled_from(["..", ".", "", "src"])), max_size=6)


@settings(max_examples=100, deadline=None)
@given(PATHS, st.sampled_from(["", "/", "ROOT/", "ROOT", "//"]), st.booleans())
def test_any_path_stays_inside_or_is_refused(names: list[str], start: str, windows: bool) -> None:
    """Whatever is given: parts that lead nowhere but down, or a refusal in words."""
    root = "/somewhere/ws"
    try:
        parts = parts_of(start.replace("ROOT", root) + "/".join(names), root, windows=windows)
    except ToolError:
        return
    joined = os.path.normpath("/".join([root, *parts]))
    assert joined == root or joined.startswith(root + "/")
    assert not any("/" in part or part in ("", ".", "..") or "\0" in part for part in parts)


SECRETS = (
    *("passwords (1).txt", "API-Keys - Copy.csv", "tokens.yaml", "Kennwörter (2).md"),
    *(".env", ".Env.local", "prod.env", "id_ed25519", "tls.key", ".npmrc", "a.kdbx", "a/.env"),
    *(".env~", "prod.env.bak", ".env.backup", ".env (1)", "#.env#", ".env.2024", "id_rsa.old"),
    *(".env.bak.gz", "a.kdbx.tmp", "keys.json.orig", "tls copy.key", "secrets.yaml.save"),
    *(".env - Copy", "Copy of id_ed25519", "Kopie von .env", "secrets.csv.tar.gz", ".~.env"),
    *(".bash_history", ".zsh_history", ".python_history", "secrets.txt", "passwords.csv"),
    *("secret.yaml", "api_key.txt", "API-Keys.csv", "my_secrets.yaml", "oauth_token"),
    *("app-secrets.properties", "passwords.xlsx", "client_secret.json", "auth.json", "shadow"),
    *("ssh_host_rsa_key", "firebase-adminsdk-x.json", "recovery-codes.txt", "cookies.sqlite"),
    *("Passwörter.txt", "contraseñas.xlsx", "mots-de-passe.odt", "пароли.docx", "密码.txt"),
    *("wifi_password.txt", "passwords.md", "id_rsa.txt", "server.pem.txt", ".env-local"),
    *("seed-phrase.txt", "2fa-codes.txt", "client_secret_123.json", ".aws/config"),
    *(".config/gh/hosts.yml", ".config/op/config", ".m2/settings.xml", ".kaggle/kaggle.json"),
    *("serviceAccountKey.json", "oauth_creds.json", "prod.tfvars.json", "krb5.keytab", "a.kdb"),
    *("kubeconfig.yaml", ".dev.vars", ".authinfo", "dotenv", "deploy_key", "passwords", "pwd.txt"),
    *("Password list.xlsx", "비밀번호.txt", "şifreler.txt"),
    *("lösenord.txt", "כלליסיסמאות/סיסמאות.txt"),
    *("secrets/prod.json", "x/secrets/db", "credentials/a/b.yaml", "api-keys/stripe.txt"),
)
NO_SECRETS = (
    *(".env.example", "id_rsa.pub", "environment.py", "keys.md", "secrets.py", ".env.example~"),
    *("notes.txt.bak", "history.md", "release_history", "main.py~", ".env.dist", "env"),
    *("password_reset.html", "tokenizer.json", "secret_santa.md", "api_keys.py", "cookies.tsx"),
    *("src/token/parser.py", "src/credentials/index.ts", "secrets/__init__.py", "token.go"),
)


def test_what_counts_as_a_secret() -> None:
    """Names of keys and environments do, and data in a folder called so; their public or sample
    forms do not, nor does source code."""
    assert [path for path in SECRETS if not secret(path.split("/"))] == []
    assert [path for path in NO_SECRETS if secret(path.split("/"))] == []


@pytest.mark.parametrize("root", [".config", ".CONFIG", ".local/share"])
def test_the_workspace_may_lie_above_the_keys(tmp_path: Path, root: str) -> None:
    """In the folder of all programs' settings those with keys stay closed, to a search too."""
    for name in ("gh/hosts.yml", "keyrings/a.keyring", "tide/notes.txt"):
        (tmp_path / root / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / root / name).write_text(SECRET)
    tree = Tree(str(tmp_path / root))
    closed_one = "keyrings/a.keyring" if "share" in root else "gh/hosts.yml"
    assert code_of(tree, closed_one) == "secret_file"
    assert closed_one not in search_files(tree, {"text": "canary"})[0]
    assert SECRET in read_file(tree, {"path": "tide/notes.txt"})[0]


@BOTH
def test_an_accent_may_be_a_sign_of_its_own(tmp_path: Path, folder: type[Folder]) -> None:
    """macOS writes names so: the file is found by either spelling, and not made twice."""
    tree = make(tmp_path, folder)
    for form, other in (("NFD", "NFC"), ("NFC", "NFD")):
        given = f"grüße{form}/é.txt"
        path = Path(tree.root, normalize(form, given))  # type: ignore[arg-type]
        path.parent.mkdir()
        path.write_text("salut")
        asked = normalize(other, given)  # type: ignore[arg-type]
        assert read_file(tree, {"path": asked})[0].endswith("salut")
        assert tree.exists(tree.parts(asked))
        tree.replace(tree.read(tree.parts(asked)), b"bonjour")
        assert [each.read_text() for each in path.parent.iterdir()] == ["bonjour"]


def test_globs() -> None:
    """A name fits anywhere, a path from the start, `**` any folders."""
    yes = [("*.py", "a/b/c.py"), ("src/**/*.py", "src/c.py"), ("src/**/*.py", "src/a/b/c.py")]
    yes += [("**", "a/b"), ("a/*/c", "a/b/c"), ("c.py", "a/c.py"), ("/a/**", "a/b/c")]
    no = [("*.py", "a.pyc"), ("src/*.py", "src/a/b.py"), ("a/*/c", "a/b/b/c"), ("b/**", "a/b/c")]
    for pattern, path in yes:
        assert matches_glob(path.split("/"), pattern), (pattern, path)
    for pattern, path in no:
        assert not matches_glob(path.split("/"), pattern), (pattern, path)
    assert not matches_glob(["a"] * 60, "/".join(["**"] * 60 + ["b"]))


@contextmanager
def swapping(tree: Tree, outside: Path) -> Iterator[None]:
    """Another thread makes the folder `src` and the file `notes.txt` links, and undoes it again."""
    root = Path(tree.root)
    spare = root.parent / "spare"
    for name, target in (("link", outside), ("note", outside / "secret.txt")):
        os.symlink(target, root.parent / name)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for real, link in (("src", "link"), ("notes.txt", "note")):
                with suppress(OSError):
                    os.rename(root / real, spare)
                    os.rename(root.parent / link, root / real)
                    os.rename(root / real, root.parent / link)
                    os.rename(spare, root / real)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("times", [150, pytest.param(20_000, marks=pytest.mark.torture)])
def test_a_race_of_links_leads_nowhere(tmp_path: Path, times: int) -> None:
    """A thread swaps a folder and a file for links to the outside: reads and writes stay inside."""
    tree = make(tmp_path)
    outside = tmp_path / "outside"
    (outside / "main.py").write_text(SECRET)
    refusals = successes = 0
    with swapping(tree, outside):
        for n in range(times * 100):
            if n >= times and refusals and successes:
                break
            try:
                path = ("src/main.py", "notes.txt")[n % 2]
                assert SECRET not in read_file(tree, {"path": path})[0]
                if n % 3 == 0:
                    tree.create(("src", f"new{n}.txt"), b"inside")
                if n % 5 == 0:
                    found = tree.read(("notes.txt",))
                    tree.replace(found, found.data)
                successes += 1
            except ToolError:
                refusals += 1
    assert {path.name for path in outside.iterdir()} == {"secret.txt", "main.py"}
    assert (outside / "secret.txt").read_text() == SECRET
    assert (outside / "main.py").read_text() == SECRET
    assert refusals, "nothing was swapped while a tool looked"
    assert successes


LINES = st.lists(st.text(alphabet="ab \r", max_size=3), max_size=12)


@settings(max_examples=60, deadline=None)
@given(LINES, LINES, LINES, LINES)
def test_a_diff_says_what_is_done(
    head: list[str], old: list[str], new: list[str], tail: list[str]
) -> None:
    """Applied by hand to the old text, a diff gives the new one, wherever the change is."""
    before, after = "\n".join(head + old + tail), "\n".join(head + new + tail)
    start = len("\n".join(head))
    end, stop = len(before), len(after)
    while start < end and start < stop and before[end - 1] == after[stop - 1]:
        end, stop = end - 1, stop - 1
    same = 0
    while same < min(start, len(after)) and before[same] == after[same]:
        same += 1
    start = min(start, same)
    if before == after:
        return
    assert applied(before, change_diff("f", before, after, start, end)) == after
    assert applied("", new_file_diff("f", after)) == after


def applied(text: str, diff: str) -> str:
    """A unified diff applied to a text, strictly."""
    old = [line + "\n" for line in text.split("\n")]
    old[-1] = old[-1][:-1]
    if not old[-1]:
        old.pop()
    out, at = list[str](), 0
    lines = diff.split("\n")[2:]
    for n, line in enumerate(lines):
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            first = int(start) - (count != "0")
            out += old[at:first]
            at = first
            continue
        ended = lines[n + 1].startswith("\\") if n + 1 < len(lines) else False
        content = line[1:] + ("" if ended else "\n")
        if line[:1] in (" ", "-"):
            assert old[at] == content
            at += 1
        if line[:1] in (" ", "+"):
            out.append(content)
    return "".join(out + old[at:])
