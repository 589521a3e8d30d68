"""`searchloop chat`, agents, workspaces, plans and undo, as a user types them."""

from __future__ import annotations

from pathlib import Path

from searchloop.render.words import words_of
from tests.attached import png
from tests.cli.conftest import Cli
from tests.cli.screen import CHANGE, MODEL, Terminal, called, notes, online, said, serving

QUESTION = "How does the search switch decide between native and local search?"


def test_the_commands_are_listed_in_the_readers_language(cli: Cli) -> None:
    """Each command with its words, and no word for a command that is not there."""
    for language, locale in (("en", "C.UTF-8"), ("de", "de_DE.UTF-8"), ("zh", "zh_CN.UTF-8")):
        words = words_of(language)
        listed = cli("chat", stdin="/help\n", LANG=locale).out.splitlines()
        told = {line[1:].split()[0]: line.split(maxsplit=1)[1] for line in listed}
        known = {k.removeprefix("command."): v for k, v in words.items() if k[:8] == "command."}
        assert told == known


def test_a_chat_in_lines(cli: Cli) -> None:
    """Questions, commands and mistakes, one a line; settings are kept for the session."""
    lines = [
        *("/help", "/search on", QUESTION, "/sources", "/mode root", "/nope\x1b[31m", "/model x"),
        *(
            *("/agent planner", "/agent none", "/undo", "/compact", "/run", "/search"),
            *("goes on \\", "in the next line", "/new", "/exit"),
        ),
        "never read",
    ]
    ran = cli("chat", stdin="\n".join(lines))
    assert ran.code == 0
    for words in (
        "/undo ",
        "nothing to summarise",
        "[1]",
        "These words stand in the source",
        "library://",
    ):
        assert words in ran.out
    for words in (
        *("search auto", "no mode root", "no command /nope[31m", "'x'", "agent planner"),
        *("that this chat shows has changed a file", "There is no plan", "mode plan, search off"),
    ):
        assert words in ran.err, words
    assert "\x1b" not in ran.out + ran.err
    assert "never read" not in ran.out
    (session,) = cli("sessions", "-o", "json").json["sessions"]
    assert (session["messages"], session["mode"]) == (2, "plan")


def test_a_file_goes_with_the_next_question(cli: Cli, tmp_path: Path) -> None:
    """Only with that; one that is refused stays for the question after a change of the model."""
    (tmp_path / "dial.png").write_bytes(png())
    (tmp_path / "notes.md").write_text("High water is at noon.")
    with serving(said("A dial."), said("Noon [1]."), said("Yes.")) as server:
        lines = [
            *("/file nowhere.png", "/file dial.png", "/model builtin:extractive", "What is it?"),
            *(f"/model {MODEL}", "What is it?", '/file "notes.md"', "When?", "Sure?"),
        ]
        ran = cli("chat", stdin="\n".join(lines), **online(server))
        bodies = [r.json for r in server.requests if r.path.endswith("/chat/completions")]
    assert "nowhere.png cannot be read" in ran.err
    assert "With the next question: dial.png (1 kB)." in ran.err
    assert "extractive cannot see images, and dial.png is one." in ran.err
    assert [sum(isinstance(m["content"], list) for m in b["messages"]) for b in bodies] == [1, 1, 1]
    assert "High water is at noon." in bodies[1]["messages"][-1]["content"]
    assert "notes.md" in ran.out


def test_a_chat_is_summarised_by_hand(cli: Cli) -> None:
    """One line says so; the chat goes on and keeps its turns."""
    ran = cli("chat", stdin="\n".join([QUESTION] * 4 + ["/compact", "/compact", QUESTION]))
    assert ran.code == 0
    assert "A summary of 2 turns now goes to the model." in ran.out
    assert "There is nothing to summarise" in ran.out
    (session,) = cli("sessions", "-o", "json").json["sessions"]
    assert session["messages"] == 5


def test_an_empty_chat_leaves_nothing(cli: Cli) -> None:
    """A session in which nothing was asked is not kept."""
    assert cli("chat", "--agent", "editor", stdin="/mode plan\n").code == 0
    assert cli("ask", "--agent", "editor", "-m", "nonsense", "Hello").code == 2
    assert cli("sessions", "-o", "json").json["sessions"] == []


def test_a_file_is_made_and_undone(cli: Cli, tmp_path: Path) -> None:
    """--workspace gives file tools, --approve auto lets them write, `undo` takes it back."""
    (tmp_path / "ws").mkdir()
    replies = (called("create_file", path="notes/a.txt", content="hi\n"), said("Done."))
    with serving(*replies) as server:
        ran = cli(
            *("ask", "--mode", "agent", "--workspace", "ws", "--approve", "auto", "Write it"),
            **online(server),
        )
    assert (ran.code, ran.out.strip()) == (0, "Done.")
    assert "Made notes/a.txt" in ran.err
    assert (tmp_path / "ws" / "notes" / "a.txt").read_text() == "hi\n"
    (session,) = cli("sessions", "-o", "json").json["sessions"]
    undone = cli("sessions", "undo", session["id"])
    assert undone.out.strip() == "As before: notes/a.txt"
    assert list((tmp_path / "ws").iterdir()) == []
    assert cli("sessions", "undo", session["id"]).code == 2


def test_without_a_terminal_nothing_is_written(cli: Cli, tmp_path: Path) -> None:
    """Nobody can be asked, so the call is refused and the model told."""
    (tmp_path / "ws").mkdir()
    with serving(called("create_file", path="a.txt", content="x"), said("I may not.")) as server:
        ran = cli("ask", "--mode", "agent", "--workspace", "ws", "Write", **online(server))
        told = server.requests[-1].json["messages"][-1]["content"]
    assert ran.out.strip() == "I may not."
    assert "nobody can be asked" in told
    assert "see --approve auto" in ran.err
    assert list((tmp_path / "ws").iterdir()) == []


def test_a_plan_is_shown_and_run(cli: Cli) -> None:
    """`--mode plan` prints the plan, `--run-plan` hands it to agent mode in the same session."""
    steps = [{"text": "Read it", "files": ["a.txt"]}, {"text": "Change it"}]
    with serving(
        called("present_plan", title="Better", steps=steps), said("It is better then."), said("OK.")
    ) as server:
        planned = cli("ask", "--mode", "plan", "Plan it", **online(server))
        done = cli("ask", "-c", "--run-plan", "-o", "json", **online(server))
        asked = server.requests[-1].json["messages"][-1]["content"]
    steps_shown = "1. Read it - Touches: `a.txt`\n2. Change it\n"
    assert planned.out.startswith(f"**Plan: Better**\n\n{steps_shown}")
    assert done.json["answer"] == "OK."
    assert "Carry out this plan: Better" in asked
    (session,) = cli("sessions", "-o", "json").json["sessions"]
    assert (session["mode"], session["messages"]) == ("agent", 2)


def test_agents_from_made_to_removed(cli: Cli, tmp_path: Path) -> None:
    """Listed, made, changed, used and removed; a session keeps what it was given."""
    assert "researcher" in cli("agents").out
    (tmp_path / "rhyme.txt").write_text("Rhyme.")
    made = ("--system", "@rhyme.txt", "--tools", "read_*, list_directory", "--servers", "none")
    assert cli("agents", "create", "poet", *made, "--mode", "plan").code == 0
    changed = cli("agents", "edit", "poet", "--description", "Rhymes\x1b[1m", "--mode", "")
    assert "\x1b" not in changed.out
    shown = cli("agents", "show", "poet", "-o", "json").json
    assert (shown["tools"], shown["servers"]) == (["read_*", "list_directory"], [])
    assert (shown["system"], shown["mode"], shown["search"]) == ("Rhyme.", None, "off")
    with serving(said("In rhyme.")) as server:
        assert cli("ask", "--agent", "poet", "Speak", **online(server)).code == 0
        assert "Rhyme." in str(server.requests[-1].json["messages"][0])
    assert cli("agents", "delete", "poet").code == 0
    assert cli("agents", "show", "poet").code == 2
    (session,) = cli("sessions", "-o", "json").json["sessions"]
    assert session["agent"] == "poet"


def test_alt_and_enter_begin_a_new_line(tmp_path: Path) -> None:
    """The question is sent whole at the next Enter."""
    with serving(said("Two.")) as server, Terminal(tmp_path, **online(server)) as chat:
        chat.until("> ")
        chat.type("First line\x1b\rsecond line")
        chat.until("Two.")
        assert server.requests[-1].json["messages"][-1]["content"] == "First line\nsecond line"


def test_a_write_is_asked_about_with_its_diff(tmp_path: Path) -> None:
    """Tool, arguments and diff are on the screen; `y` lets it run."""
    file = notes(tmp_path)
    with serving(CHANGE, said("Changed.")) as server, Terminal(tmp_path, **online(server)) as chat:
        chat.work_in("ws")
        chat.type("Change it")
        chat.until("replace_in_file asks to run (effect: write)")
        chat.until("-one")
        chat.until("+two")
        chat.until("[n] no")
        assert file.read_text() == "one\n"
        chat.type("y")
        chat.until("Changed.")
        assert file.read_text() == "two\n"
        chat.type("/undo")
        chat.until("As before: a.txt")
        assert file.read_text() == "one\n"
        chat.type("/quit")
        assert chat.ended()[0] == 0


def test_without_a_command_and_a_terminal_there_is_help(cli: Cli) -> None:
    """On a terminal it is a chat."""
    ran = cli()
    assert (ran.code, "usage: searchloop" in ran.out, ran.err) == (0, True, "")
