"""Names of files as a model gives them: taken apart, and judged before anything is opened.

A path is relative to the workspace, with `/` between its parts, so that a file has one spelling in
the user's rules as well. Nothing here looks at the disk: that no link leads out is seen to where
files are opened (`agent.workspace.folders`).
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase, translate
from functools import lru_cache

from agent.errors import ToolError

Parts = tuple[str, ...]

WINDOWS = os.name == "nt"
TEMPORARY = ".searchloop-"  # what our own half-written files begin with
_DEEPEST, _LONGEST, _LONGEST_NAME = 64, 4096, 255
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$", "clock$"}
    | {f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³"}
)
# Data of version control: a file written there may be run by the next command of its owner.
_CLOSED = (".git", ".hg", ".svn", "git~*", f"{TEMPORARY}*")
# Not looked through unless a search starts inside; nobody wrote what is in there by hand.
SKIPPED = frozenset(
    {"node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", ".cache"}
    | {".mypy_cache", ".ruff_cache", ".pytest_cache", ".gradle", ".terraform"}
)
_SECRET = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc"),
    *(".pypirc", ".htpasswd", ".git-credentials", ".vault-token", ".dockercfg", "wallet.dat"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*_rsa", "*_ed25519", "*.pem", "*.key"),
    *("*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.gpg", "*.ovpn"),
    *("kubeconfig", "*.kubeconfig", "*.tfstate", "*.tfstate.*", "*.tfvars", "token.json"),
    *("credentials", "credentials.json", "credentials.y*ml", "credentials.toml", "credentials.ini"),
    *("credentials.csv", "secret.json", "secrets.json", "secrets.y*ml", "secrets.toml"),
    *("secrets.ini", "service-account*.json", "service_account*.json", "keys.json"),
    *(".ssh", ".aws", ".gnupg", ".kube", ".azure", ".docker", ".password-store"),
)
_HARMLESS = ("*.pub", "*.example", "*.sample", "*.template", "*.dist", "*.example.*")
_IS_CLOSED, _IS_SECRET, _IS_HARMLESS = (
    re.compile("|".join(map(translate, patterns))) for patterns in (_CLOSED, _SECRET, _HARMLESS)
)


def parts_of(given: str, root: str, *, windows: bool = WINDOWS) -> Parts:
    """The parts of a path inside the folder `root`; () is the folder itself.

    Raises ToolError('bad_path') for what is no name and ToolError('outside_workspace') for what
    would lead out.
    """
    path = given.replace("\\", "/") if windows else given
    base = root.replace("\\", "/") if windows else root
    if _absolute(path, windows):
        raise _full_path(path, base.rstrip("/"), windows)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    problem = next((p for part in parts if (p := _wrong(part, windows))), None)
    if problem is None and (len(parts) > _DEEPEST or len(given) > _LONGEST):
        problem = "it is too long"
    if problem:
        what = f"{given[:200]!r} is no path of a file here: {problem}."
        raise ToolError("bad_path", what, "Give a path below the workspace, such as src/main.py.")
    return parts


def _absolute(path: str, windows: bool) -> bool:
    return path.startswith("/") or (windows and path[1:2] == ":")


def _full_path(path: str, base: str, windows: bool) -> ToolError:
    fold = str.casefold if windows else str
    if fold(path).startswith(fold(base) + "/"):
        what = f"Paths are relative to the workspace: {path[len(base) + 1 :][:200]!r}."
        return ToolError("bad_path", what, "Call again with that.")
    what = f"{path[:200]!r} is outside of the workspace."
    return ToolError("outside_workspace", what, "Only files below the workspace can be used.")


def _wrong(part: str, windows: bool) -> str | None:
    """What is wrong with one name, in words; None when nothing is."""
    if part == "..":
        return "'..' leads upwards"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in part):
        return "it holds a control character or half a character"
    if len(part.encode()) > _LONGEST_NAME:
        return "a name in it is too long"
    if "\\" in part:
        return "its parts are separated by '/', not by a backslash"
    if windows and (set(part) & set('<>:"|?*') or part[-1] in ". "):
        return f"{part[:60]!r} cannot be the name of a file"
    if windows and part.partition(".")[0].rstrip().casefold() in _DEVICES:
        return f"{part[:60]!r} is the name of a device"
    return None


@lru_cache(4096)
def plain_name(name: str) -> str:
    """The name as rules compare it: without case, and without characters that nobody sees.

    Some file systems take `.GIT` or `.g<joiner>it` for `.git`; the rules must as well.
    """
    name = unicodedata.normalize("NFKC", name)
    seen = "".join(ch for ch in name if unicodedata.category(ch) != "Cf")
    return seen.casefold().rstrip(". ") or seen


def closed(parts: Sequence[str]) -> bool:
    """Whether a path is in what belongs to version control or to searchloop itself."""
    return any(_IS_CLOSED.match(plain_name(part)) for part in parts)


def secret(parts: Sequence[str], allowed: Iterable[str] = ()) -> bool:
    """Whether a path bears the name of a secret, and no pattern of the user's allows it.

    A pattern with a `/` is compared with the whole path, one without with each name in it.
    """
    names = [plain_name(part) for part in parts]
    if not any(_IS_SECRET.match(name) and not _IS_HARMLESS.match(name) for name in names):
        return False
    whole = "/".join(names)
    for pattern in map(str.casefold, allowed):
        if fnmatchcase(whole, pattern) if "/" in pattern else _any(names, pattern):
            return False
    return True


def _any(names: Iterable[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def matches_glob(parts: Sequence[str], pattern: str) -> bool:
    """Whether a path fits a glob: `*.py` any name, `src/*.py` the whole path, `**` any folders.

    Linear in path times pattern, so that no pattern can keep a search busy.
    """
    wanted = [part for part in pattern.split("/") if part not in ("", ".")]
    if "/" not in pattern.strip("/"):
        wanted = ["**", *wanted]
    places = {0}  # how many parts of the pattern may be used up by now
    for part in parts:
        places |= {n + 1 for n in places if n < len(wanted) and wanted[n] == "**"}
        places = {n for n in places if n < len(wanted) and wanted[n] == "**"} | {
            n + 1 for n in places if n < len(wanted) and fnmatchcase(part, wanted[n])
        }
    return any(all(rest == "**" for rest in wanted[n:]) for n in places)
