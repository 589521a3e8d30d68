"""What a mark of an answer claims."""

from __future__ import annotations

from searchloop.agent.search.claims import Claims
from tests.tables import each_row


def claimed(text: str, mark: str = "[1]", nth: int = 0) -> tuple[str, ...]:
    """The readings of the claim of the nth `mark`."""
    places, at = [], -1
    while (at := text.find("[", at + 1)) >= 0:
        places.append((at, text.index("]", at) + 1))
    start = [place for place in places if text[slice(*place)] == mark][nth]
    return tuple(" ".join(claim.split()) for claim in Claims(text, places).at(*start))


@each_row(
    ("text", "claims"),
    [
        ("First. The second one is long [1] [2].", ("The second one is long",)),
        ("First.\n- the third one [1]", ("- the third one",)),
        ("So says Dr. Smith of St. Louis [1].", ("So says Dr. Smith of St. Louis",)),
        ("It opened in May. [1] It closed.", ("It opened in May.",)),
        ("It opened in May.[1] It closed.", ("It opened in May.",)),
        ("[1] says that it opened in May.", ("says that it opened in May.",)),
        ("See it.\n\n[1] says that it opened.", ("says that it opened.",)),
        ("According to [1], it opened in May.", ("According to , it opened in May.",)),
        (
            "It opened in May [2] and was closed in June [1].",
            ("It opened in May and was closed in June", "and was closed in June"),
        ),
        ("他说：第一。第二句话在这里[1]。", ("第二句话在这里",)),
        ("He said: “It was red. It was big.” [1]", ("He said: “It was red. It was big.”",)),
        ('"One. Two three four. Five." [1]', ('"One. Two three four. Five."',)),
        ("| Berlin | 3.6 million [1] |", ("| Berlin | 3.6 million",)),
        ("| The port never freezes. | [1] |", ("| The port never freezes.",)),
        ("**第一句话在这里。** [1]", ("**第一句话在这里。**",)),
        ("The port never freezes.\n\n[1]", ("The port never freezes.",)),
        ("The port never freezes. (Source: [1])", ("The port never freezes.",)),
        ("1. Junto al río. [1]", ("Junto al río.",)),
        ("[1]", ()),
    ],
)
def test_the_claim_is_the_sentence_of_the_mark(text: str, claims: tuple[str, ...]) -> None:
    """Up to the mark; with the quotation that it ends; from the mark on where it comes first."""
    assert claimed(text) == claims


def test_a_range_of_words_claims_them() -> None:
    """Some providers name the words that a source supports instead of writing a mark; what they
    cut in its middle is whole again."""
    text = "It is version 1.0.0 since 2014. 它开放了。"
    whole = [((0, 31), (0, 31)), ((0, 19), (0, 18)), ((14, 31), (18, 30)), ((32, 34), (32, 34))]
    for place, cut in whole:
        assert Claims(text, [cut]).at(*cut) == (text[slice(*place)],)


@each_row(
    "at", ["https://a.example/", '<https://a.example/> "The port"', "https://a.example/b_(c)"]
)
def test_a_link_in_words_is_a_part_of_its_sentence(at: str) -> None:
    """Its words are claimed with the others; a linked number, or a name in round brackets as OpenAI
    writes it, is a mark like any other."""
    parts = ("The ", f"[port never freezes]({at})", ", they say. So [1](https://a.example/). ")
    text = "".join((*parts, "It is the northernmost of all ", f"([a.example]({at}))", "."))
    places = [(4, 4 + len(parts[1]))]
    for mark in ("[1](https://a.example/)", f"([a.example]({at}))"):
        places.append((text.index(mark), text.index(mark) + len(mark)))
    claims = Claims(text, places)
    words, number, name = (" ".join(claims.at(*place)[0].split()) for place in places)
    assert words == "The [port never freezes] , they say."
    assert "freezes" not in number
    assert name == "It is the northernmost of all"
