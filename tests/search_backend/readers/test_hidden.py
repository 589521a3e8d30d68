"""What unfolds, flies in or arrives in pieces is read; what is hidden for good is not."""

from __future__ import annotations

import pytest

from searchloop.search_backend.readers._html.bounds import parsed
from searchloop.search_backend.readers._html.hidden import remove_hidden
from tests.tables import each_row

SHOWN = "The harbour was built in three stages, and each of them is described at some length. "
FOLDED = "You should rinse the pot first, because old leaves make every new tea taste of hay. "


def seen(body: str, head: str = "") -> str:
    """The text of a page that is left."""
    markup = f"<html><head>{head}</head><body><main><p>{SHOWN * 20}</p>{body}</main></body></html>"
    tree, _ = parsed(markup)
    remove_hidden(tree)
    return tree.body.text(deep=True) if tree.body is not None else ""


@pytest.mark.parametrize(
    "folded",
    [
        "<h3><button aria-controls=a>?</button></h3>"
        f"<div style='max-height:0px'><div aria-hidden=true id=a>{FOLDED}</div></div>",
        f"<button aria-controls=a>?</button><div id=a><div style='height:0'>{FOLDED}</div></div>",
        f"<div><b aria-expanded=false>Which?</b></div><div style='display:none'>{FOLDED}</div>",
        f"<div>Which pot?</div><div class=faq-answer style='display: none;'>{FOLDED}</div>",
        f"<p>Which?</p><div role=tabpanel style='display:none'>{FOLDED}</div>",
        f"<ul class=accordion><li>Which?</li><li class=folded>{FOLDED}</li></ul>",
    ],
)
def test_what_a_visitor_can_open_is_read(folded: str) -> None:
    """A control names it, what is around it or in it, or stands before it; or its name says so."""
    assert FOLDED in seen(folded, "<style>.folded{display:none}</style>")


@each_row(
    "hidden",
    [
        f"<div style='display:none'>{FOLDED}</div>",
        f"<header><b aria-expanded=false>M</b></header><div style='display:none'>{FOLDED}</div>",
        f"<div><b aria-expanded=false></b></div><div style='display:none'>{FOLDED}</div>",
        f"<div>{SHOWN * 5}<i aria-expanded=false>M</i></div><div hidden>{FOLDED}</div>",
        f"<b>Which?</b><div class=faq style='display:none;font-size:0'>{FOLDED}</div>",
        f"<b>Which?</b><div class=faq style='position:absolute;left:-9999px'>{FOLDED}</div>",
        f"<b>Which?</b><div class='faq tiny'>{FOLDED}</div>",
        f"<b aria-expanded=false>Menu</b><div hidden>{'<a href=/x>rinse the pot</a> ' * 9}</div>",
        f"<b aria-expanded=false>Menu</b><dialog>{FOLDED}</dialog>",
        "<b aria-expanded=false>Menu</b><p hidden>rinse the pot</p>",
    ],
)
def test_what_is_hidden_for_good_is_not(hidden: str) -> None:
    """Nothing opens it, or opening would show nothing, or it is a menu or a box."""
    assert "rinse the pot" not in seen(hidden, "<style>.tiny{font-size:0}</style>")


@each_row(
    ("style", "is_read"),
    [
        ("opacity:0;transform:translateY(54px)", True),
        ("transform: matrix(1,0,0,1,0,30); opacity: 0;", True),
        ("opacity:0", False),
        ("opacity:0;transform:none", False),
        ("opacity:0;transform:translateX(-9999px)", False),
        ("opacity:0;transform:scale(0)", False),
    ],
)
def test_what_flies_in_is_read(style: str, is_read: bool) -> None:
    """Transparent and moved by a little waits for a visitor; merely transparent is hidden."""
    assert (FOLDED in seen(f"<div style='{style}'>{FOLDED}</div>")) is is_read


@pytest.mark.parametrize(("waits", "is_read"), [("P:1f", True), ("B:1f", True), ("P:2", False)])
def test_pieces_that_have_a_place_are_read(waits: str, is_read: bool) -> None:
    """A page is streamed in boundaries and, inside those, in segments; both have places."""
    place = f"<template id='{waits}'></template></main><div hidden id='S:1f'>{FOLDED}</div><main>"
    assert (FOLDED in seen(place)) is is_read


def test_what_an_element_shows_of_its_own_is_read() -> None:
    """A shadow tree in the markup, one inside another; other templates show nothing."""
    inner = "<in-ner><template shadowrootmode='open'>deep</template></in-ner>"
    own = f"<my-el><template shadowrootmode=open>own {inner}</template> light</my-el>"
    assert seen(f"{own}<template>SECRET</template>").endswith("own deep light")


def test_a_frame_that_stays_open_does_not_take_the_page() -> None:
    """Where scripts run it ends with the element for those without; so it does here."""
    frame = "<noscript><iframe src='https://t.example/?id=1' height=0 /> </noscript>"
    assert FOLDED in seen(f"{frame}<p>{FOLDED}</p>")
