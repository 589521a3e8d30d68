"""Files that hold keys or passwords, by their names: no model gets one unasked.

The workspace asks before such a file is read, and the library leaves it out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from fnmatch import translate
from functools import cache, lru_cache
from os.path import splitext

# Folders in which programs keep keys: none of them is a workspace.
FOLDERS = (
    *(".ssh", ".aws", ".gnupg", ".kube", ".azure", ".docker", ".password-store", ".gcloud"),
    *(".config/gcloud", ".config/gh", ".local/share/keyrings", ".mozilla", ".thunderbird"),
    *(".vault", ".terraform.d", ".oci", ".pki", ".keychain", "library/keychains", ".huggingface"),
    *(".config/rclone", ".config/google-chrome", ".config/chromium", ".electrum", ".bitcoin"),
    *(".config/op", ".config/hub", ".config/sops", ".config/doctl", ".config/hcloud", ".fly"),
    *(".config/github-copilot", ".aliyun", ".kaggle", ".snowsql", ".m2", ".secret", ".secrets"),
)
_SECRET = (
    *(".env", ".env[-._]*", "*.env", ".envrc", ".envrc.*", ".netrc", "_netrc", ".pgpass*"),
    *(".my.cnf", ".mylogin.cnf", ".npmrc", ".authinfo*", ".gitcookies", ".dev.vars*", "dotenv"),
    *(".pypirc", ".htpasswd", ".git-credentials", ".vault-token", ".dockercfg", "wallet.dat"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*_rsa", "*_ed25519", "*.pem", "*.key"),
    *("*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.kdb", "*.ppk", "*.gpg", "*.ovpn"),
    *("kubeconfig*", "*.kubeconfig", "kube.config", "*.tfstate", "*.tfstate.*", "*.tfvars*"),
    *("service*account*.json", "keys.json", "kaggle.json", "oauth*.json", "*_creds.json"),
    *(".*_history", ".lesshst", ".viminfo", ".s3cfg", ".boto", "ssh_host_*_key", "*rclone.conf"),
    *(".smbcredentials", ".vault_pass*", "logins.json", "key4.db", "login data", "*.keychain*"),
    *("wp-config.php", "firebase-adminsdk*.json", "auth.json", ".token", "pass.txt"),
    *("*deploy_key", "*.keytab", "signons.sqlite", ".databrickscfg", ".ossutilconfig"),
    *("client_secret*.json", "secret.json", "secret.y*ml", "*sh_history", "*.1pux", "*.pgp"),
    *FOLDERS,
)
# What is called so and holds data, whatever stands before it, and data in a folder called so.
_NOUNS = (
    r"(?:tokens?|shadow|cookies|(?:.*[-_. ])?(?:secrets|passwords?|passwd|pwds?|passphrases?"
    r"|passw(?:ö|oe)rter|passwort|kennw(?:ö|oe)rter|kennwort|zugangsdaten|contraseñas?|senhas?"
    r"|mots?[-_ ]de[-_ ]passe|wachtwoord(?:en)?|hasł[ao]|парол[иьі]|密码|密碼|パスワード|비밀번호"
    r"|lösenord|passord|adgangskoder?|salasanat?|hesl[ao]|parole|parola|şifre(?:ler)?|jelszavak"
    r"|كلمات[-_ ]السر|סיסמאות|credentials?|client[-_]secrets?|mnemonic"
    r"|(?:api|private|secret|account|signing|master|ssh|age)[-_]?keys?"
    r"|(?:access|auth|oauth)[-_]?tokens?|(?:seed|recovery)[-_]?phrases?"
    r"|(?:vault|recovery|backup|2fa|tan|pin)[-_](?:pass(?:word)?|codes?|keys?|liste?)))"
    r"(?:[-_ ](?:list|liste|export|db))?"
)
_DATA = (
    r"\.(?:txt|json|ya?ml|toml|ini|csv|tsv|properties|conf|cfg|xlsx?|ods|kdb|db|xml|plist|md|asc"
    r"|docx?|odt|rtf|pdf|numbers|sqlite|enc)"
)
_NAMED = re.compile(f"{_NOUNS}(?:{_DATA})?|.*/{_NOUNS}/(?:[^.]*[^./]|.*{_DATA})")
# What programs and people write behind the name of a file that they keep.
_KEPT = re.compile(
    r"(?:[-_. ]{1,9}(?:copy|kopie|backup|bak|old|orig|save|saved|sav|tmp|temp|swp|swo|new|\d{1,8})"
    r"|[~#]|[-_. ]?\(\d{1,3}\)|\.(?:gz|bz2|xz|zst|zip|7z|enc|tar|tgz)){1,9}$"
)
_BEFORE = re.compile(r"^(?:#+|\.[#~]+|(?:copy of|kopie von|copie de|backup|bak|old)[-_. ]+)+(?=.)")
_HARMLESS = ("*.pub", "*.example", "*.sample", "*.template", "*.dist", "*.example.*")


@lru_cache(4096)
def plain_name(name: str) -> str:
    """Returns the name without case and invisible characters, as some file systems do."""
    name = unicodedata.normalize("NFKC", name)
    seen = "".join(ch for ch in name if unicodedata.category(ch) != "Cf")
    return seen.casefold().rstrip(". ") or seen


@cache
def any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Returns what matches a name that fits one of these globs."""
    return re.compile("|".join(map(translate, patterns)))


def holds_keys(folder: str) -> bool:
    """Returns whether programs keep keys in this folder, or in one above it."""
    within = "/".join(["", *map(plain_name, folder.replace("\\", "/").split("/")), ""])
    return any(f"/{each}/" in within for each in FOLDERS)


def secret(parts: Sequence[str], root: str = "") -> bool:
    """Returns whether a path below `root` has the name of a secret; a folder's ends with ""."""
    plain = [plain_name(part) for part in parts]
    names = [_KEPT.sub("", name) or name for name in plain]
    names += [_KEPT.sub("", stem) + end for stem, end in map(splitext, names) if stem]
    names += [name.removesuffix(".txt") for name in names]
    names += [_BEFORE.sub("", name) for name in names]
    ends = (*names[len(plain) - 1 :: len(plain) or 1], "/" + "/".join(plain))
    found = [*filter(any_of(_SECRET).match, names), *filter(_NAMED.fullmatch, ends)]
    return holds_keys("/".join([root, *parts])) or not all(map(any_of(_HARMLESS).match, found))
