"""Documents beside web pages: what each kind shows, lies about kinds, damage and bombs."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchloop.search_backend.pages.worker import page_in
from searchloop.search_backend.readers import find_readers, read
from searchloop.search_backend.text.clean import decode
from searchloop.search_backend.types import Page
from tests.search_backend.documents import (
    MAIL,
    archive,
    docx,
    epub,
    notebook,
    odt,
    pdf,
    pptx,
    row,
    shape,
    words,
    xlsx,
)
from tests.tables import each_row

LISTED = '<w:numPr><w:ilvl w:val="{}"/><w:numId w:val="1"/></w:numPr>'
ROW = "<w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr>"
DOCX = docx(
    words("Kettles", "berschrift1")
    + "<w:p><w:r><w:t>5 m</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr>"
    "<w:t>2</w:t></w:r><w:r><w:t xml:space='preserve'> of a &lt;b&gt; &amp; </w:t></w:r>"
    "<w:hyperlink r:id='rId7'><w:r><w:t>shop</w:t></w:r></w:hyperlink>"
    "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
    "<w:r><w:footnoteReference w:id='3'/></w:r></w:p>"
    + "".join(words(t, more=LISTED.format(d)) for t, d in (("one", 0), ("deep", 1), ("two", 0)))
    + f"<w:tbl>{ROW.format(words('Name'), words('Litres'))}"
    + f"{ROW.format(words('Big'), words('1.7'))}</w:tbl>",
    {
        "word/styles.xml": '<w:styles xmlns:w="w"><w:style w:styleId="berschrift1">'
        '<w:name w:val="heading 1"/></w:style></w:styles>',
        "word/footnotes.xml": '<w:footnotes xmlns:w="w" xmlns:r="r"><w:footnote w:id="0" '
        "w:type='separator'><w:p/></w:footnote><w:footnote w:id='3'><w:p><w:hyperlink r:id='rId7'>"
        "<w:r><w:t>pots</w:t></w:r></w:hyperlink></w:p></w:footnote></w:footnotes>",
        "word/_rels/footnotes.xml.rels": '<Relationships xmlns="r"><Relationship Id="rId7" '
        'Target="https://p.org/" TargetMode="External"/></Relationships>',
        "word/_rels/document.xml.rels": '<Relationships xmlns="r"><Relationship Id="rId7" '
        'Target="https://example.org/shop" TargetMode="External"/></Relationships>',
    },
)
ODT = odt(
    '<text:h text:outline-level="2">Kettles</text:h><text:p>Two<text:s text:c="2"/>words, a '
    '<text:a xlink:href="https://example.org/">link</text:a><text:note><text:note-citation>1'
    "</text:note-citation><text:note-body><text:p>noted</text:p></text:note-body></text:note>"
    "<office:annotation><text:p>comment</text:p></office:annotation></text:p>"
    '<text:list text:style-name="L1"><text:list-item><text:p>one</text:p></text:list-item>'
    "<text:list-item><text:p>two</text:p></text:list-item></text:list><table:table><table:table-row>"
    '<table:table-cell table:number-columns-repeated="2"><text:p>A</text:p></table:table-cell>'
    "</table:table-row></table:table>"
)
BOOK = epub({"a": "<h1>First</h1><p>A samovar.</p>", "b": "<h1>Second</h1><p>A kettle.</p>"})
NOTES = notebook(("markdown", "# Kettles\ntea", ""), ("code", "print(1)", "\x1b[31m1\x1b[0m"))
KINDS = {
    "kettles.docx": (
        DOCX,
        "Kettles",
        [
            "# Kettles\n\n5 m^2 of a <b> & [shop](https://example.org/shop)",
            "[pots](https://p.org/)",
        ],
        ["gone", "[0]"],
    ),
    "lists.docx": (DOCX, "Kettles", ["1. one\n   1. deep\n2. two", "| Big | 1.7 |"], []),
    "kettles.odt": (
        ODT,
        "Kettles",
        ["## Kettles", "[link](https://example.org/)", "(noted)", "1. one\n2. two", "| A |"],
        ["comment"],
    ),
    "book.epub": (BOOK, "A book", ["# First\n\nA samovar.\n\n# Second\n\nA kettle."], []),
    "n.ipynb": (
        NOTES,
        "Kettles",
        ["# Kettles\ntea", "```python\nprint(1)\n```", "```\n1\n```"],
        [],
    ),
    "m.eml": (
        MAIL,
        "Kettles 🫖",
        ["From: Ann <ann@example.org>", "The samovar is heiß.", "Attachments: offer.pdf"],
        [],
    ),
    "t.xlsx": (
        xlsx(
            row(2, "Item", "Price", "Share", "Since")
            + row(3, "Kettle &amp; lid", 49.9, 0.153, 45413)
            + row(5, "Samovar", 1200),
            row(1, "gone"),
        ),
        "t.xlsx",
        [
            "## Prices\n\n| Item | Price | Share | Since |\n| --- | --- | --- | --- |\n"
            "| Kettle & lid | 49.9 | 0.153 | 2024-05-01 |\n| Samovar | 1200 |  |  |"
        ],
        ["Old", "gone"],
    ),
    "t.pptx": (
        pptx(
            f"<p:sld>{shape('title', 'Last')}{shape('sldNum', '2')}</p:sld>",
            '<p:sld show="0"><a:p><a:r><a:t>gone</a:t></a:r></a:p></p:sld>',
            f"<p:sld>{shape('ctrTitle', 'First')}{shape('body', 'One', 'Two')}<a:tbl><a:tr>"
            "<a:tc><a:p><a:r><a:t>Name</a:t></a:r></a:p></a:tc><a:tc/></a:tr><a:tr>"
            "<a:tc><a:p><a:r><a:t>Big</a:t></a:r></a:p></a:tc><a:tc/></a:tr></a:tbl></p:sld>",
            notes=shape("body", "Say it slowly."),
        ),
        "First",
        [
            "## First\n\nOne\n\nTwo\n\n| Name |  |\n| --- | --- |\n| Big |  |\n\n"
            "## Last\n\nSay it slowly."
        ],
        ["gone", "2\n"],
    ),
    "t.rtf": (
        rb"{\rtf1\ansi{\fonttbl{\f0 Times;}}\f0 It is 49\'80, \u8364?5 off.\par {\b Bold}\par "
        rb"\trowd\cellx1000 Name\cell 1.7\cell\row}",
        "t.rtf",
        ["It is 49€, €5 off.\nBold\nName|1.7|"],
        ["Times", "par"],
    ),
    "a.pdf": (pdf("Samovars are hot"), "a.pdf", ["Samovars are hot"], []),
    "t.csv": (b"name,litres\nbig,1.7\n", "t.csv", ["big,1.7"], []),
    "x.py": (b"def boil():\n    pass\n", "x.py", ["def boil():\n    pass"], []),
    "README": (b"A samovar.", "README", ["A samovar."], []),
}


RUN = "<w:r><w:rPr>{}</w:rPr><w:t xml:space='preserve'>{}</w:t></w:r>"
CELL = "<w:tc><w:tcPr>{}</w:tcPr>{}</w:tc>"
NUMBERS = (
    '<w:numbering xmlns:w="w"><w:abstractNum w:abstractNumId="0">'
    '<w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="decimal"/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2">'
    '<w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/>'
    "</w:lvlOverride></w:num></w:numbering>"
)
MERGED = (
    f"<w:tbl><w:tr>{''.join(CELL.format('', words(name)) for name in 'ABC')}</w:tr><w:tr>"
    + CELL.format("<w:vMerge w:val='restart'/>", words("1"))
    + CELL.format("", "<w:p/>")
    + CELL.format("", words("x"))
    + f"</w:tr><w:tr>{CELL.format('<w:vMerge/>', '<w:p/>')}"
    + CELL.format("<w:gridSpan w:val='2'/>", words("2"))
    + f"</w:tr><w:tr>{CELL.format('<w:vMerge/>', '<w:p/>')}{CELL.format('', words('3'))}"
    + CELL.format("", words("4"))
    + "</w:tr></w:tbl>"
)
SPANNED = (
    "<table:table><table:table-header-rows><table:table-row>{0}A{1}{0}B{1}{0}C{1}</table:table-row>"
    "</table:table-header-rows><table:table-row><table:table-cell table:number-rows-spanned='2'>"
    "<text:p>1{1}<table:table-cell/>{0}x{1}</table:table-row><table:table-row>"
    "<table:covered-table-cell/><table:table-cell table:number-columns-spanned='2'><text:p>2{1}"
    "<table:covered-table-cell/></table:table-row></table:table>"
).format("<table:table-cell><text:p>", "</text:p></table:table-cell>")
STYLED = (
    "<style:style style:name='up'><style:text-properties style:text-position='super 58%'/>"
    "</style:style><style:style style:name='low'><style:text-properties style:text-position="
    "'-33% 58%'/></style:style><style:style style:name='was'><style:text-properties "
    "style:text-line-through-style='solid'/></style:style>"
    "<text:list-style style:name='L2'><text:list-level-style-number text:level='1' "
    "text:start-value='3'/><text:list-level-style-number text:level='2' style:num-format='a'/>"
    "</text:list-style>"
)
ITEM = "<text:list-item><text:p>{}</text:p>{}</text:list-item>"


SLIDE_CELL = "<a:tc{}><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:tc>"
SHIFTED = "<p:sp><a:p>{}{}{}{}{}</a:p></p:sp>".format(
    *(
        f"<a:r><a:rPr baseline='{shift}'/><a:t>{said}</a:t></a:r>"
        for shift, said in ((0, "10"), (30000, "-9"), (0, " m of H"), (-25000, "2"), (0, "O"))
    )
)


def part(tag: str, text: str) -> str:
    """A part of a formula of Word."""
    return f"<m:{tag}><m:r><m:t>{text}</m:t></m:r></m:{tag}>"


def math(tag: str, *parts: str) -> str:
    """A paragraph of Word with a formula."""
    return f"<w:p><m:oMath><m:{tag}>{''.join(parts)}</m:{tag}></m:oMath></w:p>"


INNER = f"<text:list>{ITEM.format('y', '')}</text:list>"


@each_row(
    ("body", "text"),
    [
        (docx(f"<w:p>{RUN.format('', '10')}"
              f"{RUN.format('<w:vertAlign w:val=' + repr('superscript') + '/>', '24')}</w:p>"),
         "10^24"),
        (docx(f"<w:p>{RUN.format('<w:strike/>', '20')}{RUN.format('', ' 15')}</w:p>"), "~~20~~ 15"),
        (docx(f"<w:p>{RUN.format('<w:strike w:val=' + repr('0') + '/>', '20')}</w:p>"), "20"),
        (docx("".join(words(t, more=LISTED.format(d)) for t, d in
                      (("a", 0), ("b", 1), ("c", 1), ("d", 0))), {"word/numbering.xml": NUMBERS}),
         "3. a\n   a. b\n   b. c\n4. d"),
        (docx("".join(words(t, more=LISTED.format(0).replace('"1"', '"2"')) for t in "ab"),
              {"word/numbering.xml": NUMBERS}), "7. a\n8. b"),
        (docx(MERGED),
         "| A | B | C |\n| --- | --- | --- |\n| 1 |  | x |\n| 1 | 2 | 2 |\n| 1 | 3 | 4 |"),
        (docx("<w:tbl><w:tr>{0}{0}</w:tr><w:tr><w:trPr><w:gridBefore w:val='1'/></w:trPr>{1}</w:tr>"
              "</w:tbl>".format(*(CELL.format("", words(name)) for name in "AB"))),
         "| A | A |\n| --- | --- |\n|  | B |"),
        (docx(f"<w:p>{RUN.format('', 'seen')}{RUN.format('<w:vanish/>', 'hidden')}"
              f"{RUN.format('<w:vanish w:val=' + repr('0') + '/>', '!')}</w:p>"), "seen!"),
        (docx("<w:p><w:r><w:ruby><w:rt>{}</w:rt><w:rubyBase>{}</w:rubyBase></w:ruby></w:r>{}</w:p>"
              .format(*(RUN.format("", word) for word in ("かんじ", "漢字", "の本")))),
         "漢字(かんじ)の本"),
        (docx(math("f", part("num", "a"), part("den", "b"))), r"$\frac{a}{b}$"),
        (docx(math("rad", "<m:deg/>", part("e", "2"))), r"$\sqrt{2}$"),
        (docx(math("sSup", part("e", "xy"), part("sup", "2"))), "${xy}^{2}$"),
        (docx(math("nary", "<m:naryPr><m:chr m:val='∑'/></m:naryPr>", part("sub", "i=1"),
                   part("sup", "n"), part("e", "αi"))), r"$\sum_{i=1}^{n} \alpha i$"),
        (docx(math("d", part("e", "a+b"))), "$(a+b)$"),
        (odt("<text:p>10<text:span text:style-name='up'>24</text:span> kg of H<text:span "
             "text:style-name='low'>2</text:span>O</text:p>", styles=STYLED), "10^24 kg of H2O"),
        (odt("<text:p>was <text:span text:style-name='was'>20</text:span> 15</text:p>",
             styles=STYLED), "was ~~20~~ 15"),
        (odt("<text:p>was <text:span text:style-name='no'>20</text:span></text:p>", styles=STYLED),
         "was 20"),
        (odt(f"<text:list text:style-name='L2'>{ITEM.format('x', INNER)}{ITEM.format('z', '')}"
             "</text:list>", styles=STYLED),
         "3. x\n   a. y\n4. z"),
        (odt(SPANNED), "| A | B | C |\n| --- | --- | --- |\n| 1 |  | x |\n| 1 | 2 | 2 |"),
        (odt("<text:p>a<text:hidden-text text:is-hidden='true'>b</text:hidden-text><text:span "
             "text:style-name='no'>c</text:span></text:p>",
             styles="<style:style style:name='no'><style:text-properties text:display='none'/>"
             "</style:style>"), "a"),
        (docx(f"<w:p>{RUN.format('<w:rStyle w:val=' + repr('no') + '/>', 'b')}{RUN.format('', 'a')}"
              f"</w:p>{words('c', 'no')}",
              {"word/styles.xml": '<w:styles xmlns:w="w"><w:style w:styleId="no"><w:rPr><w:vanish/>'
               "</w:rPr></w:style></w:styles>"}), "a"),
        (docx("<w:p>{0}5 {1}<w:r><w:sym w:font='Symbol' w:char='F0B1'/></w:r>{0}0.2 {1}<w:r><w:sym "
              "w:font='Symbol' w:char='6D'/></w:r></w:p>".format(*RUN.format("", "|").split("|"))),
         "5 ±0.2 μ"),
        (pptx(f"<p:sld>{SHIFTED}</p:sld>"), "10^-9 m of H2O"),
        (pptx("<p:sld><a:tbl><a:tr>{}{}</a:tr><a:tr>{}{}</a:tr></a:tbl></p:sld>".format(
            *(SLIDE_CELL.format(more, said) for more, said in
              ((" rowSpan='2'", "A"), ("", "B"), (" vMerge='1'", ""), ("", "C"))))),
         "| A | B |\n| --- | --- |\n| A | C |"),
        (xlsx(row(1, "A", "B") + row(2, "", "C\nD", "E") + row(3, "x", 1, 2), merged="A1:A2 B1:C1"),
         "## Prices\n\n| A | B | B |\n| --- | --- | --- |\n| A | C<br>D | E |\n| x | 1 | 2 |"),
        (rb"{\rtf1 10{\super\lang1033 -9} m of H{\sub 2}O{\v no}{\deleted no}.{\v0  &\b <}}",
         "10^-9 m of H2O. &<"),
    ],
)  # fmt: skip
def test_documents_keep_powers_struck_text_numbers_and_spans(body: bytes, text: str) -> None:
    """As their program shows them."""
    assert page("a.docx", body).text == text


def page(name: str, body: bytes, content_type: str = "") -> Page:
    """The page in a body, as a worker reads it."""
    suffix = f".{name.rpartition('.')[2]}"
    named = next((min(r.types) for r in find_readers() if suffix in r.suffixes), "text/plain")
    head = {"url": f"file:///notes/{name}", "content_type": content_type or named, "charset": None}
    return page_in(head, body, False, read)


@each_row("name", KINDS)
def test_each_kind_of_document_is_read(name: str) -> None:
    """Its title, its words in order, its lists, tables and links; what was deleted stays away."""
    body, title, shown, absent = KINDS[name]
    found = page(name, body)
    assert found.error is None
    assert found.title == title
    assert [part for part in shown if part not in found.text] == []
    assert [part for part in absent if part in found.text] == []


@each_row(
    ("shown", "text"),
    [
        ("About 10^{24} atoms, 10^{-6} m", "About 10^24 atoms, 10^-6 m"),
        ("Some 5.2^{1} million in 2019^{2} or so", "Some 5.2[1] million in 2019[2] or so"),
        ("The rate fell.^{12} Then", "The rate fell.[12] Then"),
        ("30 m^{2} of H_{2}O on the 1^{st} day", "30 m^2 of H2O on the 1st day"),
        ("Then ^{235}U decays", "Then ^235U decays"),
        ("1024 in 2019, x1 &lt; a<b & c>2", "1024 in 2019, x1 &lt; a<b & c>2"),
    ],
)
def test_numbers_of_a_pdf_keep_their_powers_and_notes(shown: str, text: str) -> None:
    """What stands higher or lower, and smaller, is no digit of the number before it."""
    assert page("a.pdf", pdf(shown)).text == text


@each_row("said", ["text/plain", "application/octet-stream", "application/pdf"])
@each_row("name", ["kettles.docx", "kettles.odt", "book.epub", "a.pdf"])
def test_a_lie_about_the_kind_changes_nothing(name: str, said: str) -> None:
    """The bytes tell archives and PDF, not the name and not a server."""
    assert page("x.txt", KINDS[name][0], said).text == page(name, KINDS[name][0]).text


@pytest.mark.parametrize("suffix", ["docx", "odt", "epub", "pdf", "ipynb"])
def test_text_under_a_foreign_name_is_read_as_text(suffix: str) -> None:
    """Many exports are HTML or text with the suffix of an office program."""
    assert page(f"a.{suffix}", b"A plain samovar.").text == "A plain samovar."
    assert page(f"a.{suffix}", b"<html><body><p>A samovar, hot.</p>").text == "A samovar, hot."


def test_old_and_encrypted_office_files_are_told_by_name() -> None:
    """They share one container, which holds no XML."""
    found = page("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600)
    assert found.error is not None
    assert "old Office file, or one with a password" in found.error.message


LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 9))
# Made when they are read: some take half a second, and every worker of pytest collects them.
BOMBS: Mapping[str, Callable[[], bytes]] = {
    "entities": lambda: archive(
        {
            "[Content_Types].xml": "",
            "word/document.xml": f'<!DOCTYPE x [<!ENTITY a0 "a">{LAUGHS}]><x>&a8;</x>',
        }
    ),
    "zip": lambda: docx(words("a" * 60 * 2**20)),
    "text": lambda: docx(words("a" * 5 * 2**20)),
    "parts": lambda: archive(
        {"[Content_Types].xml": "", **{f"word/{n}": "" for n in range(10_001)}}
    ),
    "deep": lambda: docx("<w:sdt>" * 200_000 + "</w:sdt>" * 200_000),
    "cut": lambda: DOCX[: len(DOCX) // 2],
    "empty": lambda: docx(""),
    "no main part": lambda: archive({"[Content_Types].xml": "", "word/x.xml": "<a/>"}),
    "no spine": lambda: archive({"META-INF/container.xml": "<a/>"}),
    "columns": lambda: odt('<table:table-cell table:number-columns-repeated="9999999"/>' * 50),
    "encrypted": lambda: odt("", {"META-INF/manifest.xml": "<encryption-data/>"}),
}


@each_row("name", BOMBS)
def test_damage_and_bombs_end_as_one_sentence(name: str) -> None:
    """None is unpacked beyond its bounds, none raises, each says what is wrong."""
    found = page("a.docx", BOMBS[name]())
    assert found.error is not None
    assert found.error.code in ("bad_document", "too_large", "no_text", "unsupported_type")
    assert found.error.message.endswith(".")


def test_a_book_with_a_lock_names_it() -> None:
    """Chapters that are noise have a key somewhere; scrambled fonts alone lock no book."""
    noise = {"OEBPS/a.xhtml": bytes(range(256)) * 9}
    for lock in ("META-INF/rights.xml", "META-INF/encryption.xml"):
        found = page("a.epub", epub({"a": ""}, parts={**noise, lock: "<a/>"}))
        assert found.error is not None
        assert "password" in found.error.message, lock
    told = page("a.epub", epub({"a": ""}, parts=noise)).error
    assert told is not None
    assert "holds no text" in told.message
    book = epub({"a": "<p>A samovar.</p>"}, parts={"META-INF/encryption.xml": "<a/>"})
    assert page("a.epub", book).text == "A samovar."


@pytest.mark.parametrize("cells", ["[" * 100_000, "7}", "[]}", '[{"source": {}}'])
def test_a_damaged_notebook_is_shown_as_it_stands(cells: str) -> None:
    """It is JSON, or nearly."""
    text = '{"nbformat": 4, "cells": ' + cells
    assert page("a.ipynb", text.encode()).text == text


@given(st.binary(max_size=200), st.integers(0, 2000), st.sampled_from([*KINDS]))
def test_no_damage_raises(noise: bytes, at: int, name: str) -> None:
    """A document with any bytes in any place is read or refused."""
    body = KINDS[name][0]
    page(name, body[:at] + noise + body[at + len(noise) :])


LEGACY = {
    "ru": ("windows-1251 koi8-r ibm866", "Вчера вечером мы долго говорили о чайниках и самоварах."),
    "ja": ("shift_jis euc-jp iso-2022-jp", "昨日の夜、やかんについて長い間話し合いました。"),
    "zh": ("gb18030 big5", "昨天晚上我們討論了水壺，談了很久，終於決定買一個。"),
    "ko": ("euc-kr", "어제 저녁 우리는 주전자에 대해 오랫동안 이야기했습니다."),
    "ja2": ("cp932 euc_jisx0213", "昨日の夜、①番の㈱のやかんについて長い間話し合いました。"),
    "ko2": ("cp949", "어제 저녁 우리는 똠방각하와 펲시콜라에 대해 오랫동안 이야기했습니다."),
    "zh2": ("big5hkscs", "昨天晚上我們討論了水壺，嘅係談了很久，終於決定買一個。"),
    "el": ("windows-1253", "Χθες το βράδυ συζητήσαμε πολλή ώρα για τσαγιέρες."),
    "he": ("windows-1255", "אתמול בערב דיברנו זמן רב על קומקומים."),
    "ar": ("windows-1256", "تحدثنا مساء أمس طويلا عن غلايات الماء."),
    "th": ("cp874", "เมื่อวานตอนเย็นเราคุยกันนานเรื่องกาน้ำ"),
    "pl": (
        "windows-1250 iso-8859-2",
        "Wczoraj długo rozmawialiśmy o czajnikach. Żółta łódź, źdźbło.",
    ),
    "de": (
        "windows-1252",
        "Gestern haben wir über Kessel geredet: größer, schöner, für alle – „heiß“.",
    ),
    "any": ("utf-16 utf-16-le utf-16-be utf-8-sig", "Чайник 水 kettle\n"),
}


@each_row(
    ("encoding", "text"), [(e, text) for names, text in LEGACY.values() for e in names.split()]
)
def test_texts_without_a_label_are_no_mojibake(encoding: str, text: str) -> None:
    """A file says nothing about its encoding; its bytes do."""
    assert decode(text.encode(encoding)) == text
    assert page("a.txt", text.encode(encoding)).text == text.strip()


def test_a_mail_with_its_own_markup_shows_what_people_see() -> None:
    """HTML is read as a page, base64 and foreign encodings are undone, odd headers do no harm."""
    html = base64.b64encode(
        ("<style>.x{display:none}</style><p>" + "Привет. " * 9 + "<p class=x>tracker").encode()
    )
    mail = b"Subject: =?x?Q?=\r\nDate: never\r\nContent-Type: text/html; charset=utf-8\r\n"
    found = page("a.eml", mail + b"Content-Transfer-Encoding: base64\r\n\r\n" + html)
    assert "Привет" in found.text
    assert "tracker" not in found.text
