"""Passwords and keys that stand inside settings: known as secrets, and never shown."""

from __future__ import annotations

from searchloop.agent.settings.secrets import given_by_flags, masked, masked_command, secrets_of
from tests.tables import each_row

PLACES = [
    ("http://me:s3cret%40pass@host:80/x", "http://me:[secret]@host:80/x", "s3cret@pass"),
    ("http://s3cretpass@host/", "http://[secret]@host/", "s3cretpass"),
    ("http://me:s3cret@pass@host/", "http://me:[secret]@host/", "s3cret@pass"),
    ("https://h/find?q=%s&key=s3cretpass", "https://h/find?q=%s&key=[secret]", "s3cretpass"),
    (
        "https://h/mcp/?tavilyApiKey=s3cretpass#x",
        "https://h/mcp/?tavilyApiKey=[secret]#x",
        "s3cretpass",
    ),
    (
        "https://h/?a=1;access_token=s3cret%2Bpass",
        "https://h/?a=1;access_token=[secret]",
        "s3cret+pass",
    ),
    ("postgresql://me:s3cretpass@h:1/db?x=y", "postgresql://me:[secret]@h:1/db?x=y", "s3cretpass"),
    ("host=h password=s3cretpass dbname=d", "host=h password=[secret] dbname=d", "s3cretpass"),
    ("host=h password = 's3cret pass'", "host=h password = [secret]", "s3cret pass"),
    ("http://h/ --api-key=s3cretpass", "http://h/ --api-key=[secret]", "s3cretpass"),
]


@each_row(("value", "shown", "secret"), PLACES)
def test_a_secret_inside_a_setting(value: str, shown: str, secret: str) -> None:
    """It is shown without that part, which counts as a secret as it stands and as it is meant."""
    assert masked(value) == shown
    assert secret in secrets_of({"X_URL": value}).values()
    assert all("X_URL" in name for name in secrets_of({"X_URL": value}))


@each_row(
    "value",
    [
        *(
            "http://127.0.0.1:8080/",
            "https://h/?keyword=x y@z",
            "brave,ddg",
            "a@b.example",
            "",
            "/a b",
        ),
        *("https://h/monkey=1", "10 requests = 1 key", "https://h/a@b", "http://h/?q=token"),
    ],
)
def test_what_holds_no_secret_is_shown_as_it_is(value: str) -> None:
    """Addresses with an @ elsewhere, and words that only sound like a key."""
    expected = value.replace("keyword=x", "keyword=[secret]")  # rather too much than too little
    assert masked(value) == expected


def test_the_arguments_of_a_program() -> None:
    """Keys are given behind a flag or with it; other words stay."""
    words = (
        "npx",
        "-y",
        "pkg",
        "--api-key",
        "s3cretpass",
        "--token=other+pass",
        "--token",
        "-v",
        "x",
    )
    assert masked_command(words) == (
        *("npx", "-y", "pkg", "--api-key", "[secret]", "--token=[secret]", "--token", "-v", "x"),
    )
    assert set(given_by_flags(words).values()) == {"s3cretpass", "other+pass"}
    assert masked_command(("python", "-c", "print(1)")) == ("python", "-c", "print(1)")


def test_long_values_cost_little() -> None:
    """A file of somebody else's may hold a very long one."""
    for value in ("https://h/?" + "a" * 200_000, "?" * 200_000, "--key" * 50_000, "a-" * 100_000):
        masked(value)
