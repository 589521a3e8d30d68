"""Small documents of many kinds, made here: DOCX, ODT, EPUB, notebooks, mail, PDF."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

from searchloop.search_backend.readers import read

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'


TEXT = "A samovar boils water, number {}."


def made(root: Path, *names: str | tuple[str, str | bytes]) -> Path:
    """A folder with these files; a name alone gets a text that has the word samovar."""
    for name, text in ((one, TEXT.format(one)) if isinstance(one, str) else one for one in names):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    """A ZIP archive of these parts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in parts.items():
            how = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            packed.writestr(name, data, compress_type=how)
    return file.getvalue()


def words(text: str, style: str = "", more: str = "") -> str:
    """A paragraph of Word."""
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{more}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def docx(body: str, parts: Mapping[str, str] | None = None) -> bytes:
    """A Word document with this body."""
    names = f'xmlns:w="{_W}" xmlns:r="{_OFFICE}" xmlns:m="m"'
    document = f"<w:document {names}><w:body>{body}</w:body></w:document>"
    kept = {"[Content_Types].xml": _TYPES, "word/document.xml": document}
    return archive({**kept, **(parts or {})})


def xlsx(rows: str, hidden: str = "", merged: str = "") -> bytes:
    """An Excel file with the sheet Prices of these cells, some `merged`; a second is hidden."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    sheet = f"<worksheet {main}><sheetData>{{}}</sheetData></worksheet>"
    spans = "".join(f'<mergeCell ref="{place}"/>' for place in merged.split())
    spans = f"<mergeCells>{spans}</mergeCells>" if spans else ""
    named = '<sheet name="{}" sheetId="{}" r:id="rId{}"{}/>'
    sheets = named.format("Prices", 1, 1, "") + named.format("Old", 2, 2, ' state="hidden"')
    link = f'<Relationship Id="rId{{0}}" Type="{_OFFICE}/worksheet" Target="worksheets/{{0}}.xml"/>'
    styles = f'<Relationship Id="rId3" Type="{_OFFICE}/styles" Target="styles.xml"/>'
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    return archive(
        {
            "[Content_Types].xml": _TYPES,
            "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="a" '
            f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook {main} xmlns:r="{_OFFICE}"><sheets>{sheets}</sheets>'
            "</workbook>",
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}">'
            f"{link.format(1)}{link.format(2)}{styles}</Relationships>",
            "xl/styles.xml": f'<styleSheet {main}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
            "</cellXfs></styleSheet>",
            "xl/worksheets/1.xml": sheet.format(rows).replace("</w", f"{spans}</w"),
            "xl/worksheets/2.xml": sheet.format(hidden),
        }
    )


def row(number: int, *cells: str | float) -> str:
    """A row of a sheet of Excel; the fourth cell is a date, as the number of its day."""
    shown = (
        f'<c r="{letter}{number}" t="inlineStr"><is><t>{cell}</t></is></c>'
        if isinstance(cell, str)
        else f'<c r="{letter}{number}" s="{int(letter == "D")}"><v>{cell}</v></c>'
        for letter, cell in zip("ABCD", cells, strict=False)
    )
    return f'<row r="{number}">{"".join(shown)}</row>'


def pptx(*slides: str, notes: str = "") -> bytes:
    """A presentation whose slides are shown from the last to the first; the first has notes."""
    names = f'xmlns:p="p" xmlns:a="a" xmlns:r="{_OFFICE}"'
    link = '<Relationship Id="r{0}" Type="{1}/{2}" Target="{3}"/>'
    shown = "".join(f'<p:sldId id="{256 + n}" r:id="r{n}"/>' for n in reversed(range(len(slides))))
    links = (link.format(n, _OFFICE, "slide", f"slides/s{n}.xml") for n in range(len(slides)))
    said = link.format(1, _OFFICE, "notesSlide", "../notes/n.xml")
    return archive(
        {
            "[Content_Types].xml": _TYPES,
            "ppt/presentation.xml": f"<p:presentation {names}>{shown}</p:presentation>",
            "ppt/_rels/presentation.xml.rels": f"<R>{''.join(links)}</R>",
            **{f"ppt/slides/s{n}.xml": text.replace("<p:sld", f"<p:sld {names}", 1)
               for n, text in enumerate(slides)},
            "ppt/slides/_rels/s0.xml.rels": f"<R>{said}</R>",
            "ppt/notes/n.xml": f"<p:notes {names}>{notes}</p:notes>",
        }
    )  # fmt: skip


def shape(kind: str, *lines: str) -> str:
    """A box of a slide with these paragraphs."""
    said = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
    return f'<p:sp><p:nvPr><p:ph type="{kind}"/></p:nvPr>{said}</p:sp>'


def odt(body: str, parts: Mapping[str, str] | None = None, *, styles: str = "") -> bytes:
    """An OpenDocument text with this body."""
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text", "table", "style")
    )
    link = ' xmlns:xlink="http://www.w3.org/1999/xlink"'
    content = (
        f"<office:document-content{names}{link}><office:automatic-styles>"
        '<text:list-style style:name="L1"><text:list-level-style-number text:level="1"/>'
        f"</text:list-style>{styles}</office:automatic-styles>"
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    content = content.replace('list-style style:name="L1"', 'list-style text:name="L1"')
    kind = "application/vnd.oasis.opendocument.text"
    return archive({"mimetype": kind, "content.xml": content, **(parts or {})})


def epub(
    chapters: Mapping[str, str], title: str = "A book", parts: Mapping[str, str | bytes] = {}
) -> bytes:
    """An e-book; the order of its spine is that of the chapters, the manifest has it reversed."""
    items = "".join(f'<item id="{n}" href="{n}.xhtml"/>' for n in reversed(list(chapters)))
    spine = "".join(f'<itemref idref="{n}"/>' for n in chapters)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata><dc:title>{title}</dc:title></metadata>"
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    )
    pages = {
        f"OEBPS/{n}.xhtml": f"<html><head><title>x</title></head><body>{text}</body></html>"
        for n, text in chapters.items()
    }
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OEBPS/book.opf": package,
            **pages,
            **parts,
        }
    )


def notebook(*cells: tuple[str, str, str]) -> bytes:
    """A notebook of cells (kind, source, printed output)."""
    made = [
        {
            "cell_type": kind,
            "source": source.splitlines(keepends=True),
            "outputs": [{"output_type": "stream", "text": [out]}] if out else [],
        }
        for kind, source, out in cells
    ]
    kernel = {"kernelspec": {"language": "python"}}
    return json.dumps({"cells": made, "metadata": kernel, "nbformat": 4}).encode()


def pdf(text: str) -> bytes:
    """A PDF of one page; what stands in `^{}` or `_{}` is raised or lowered there."""
    for sign, rise in (("^", 5), ("_", -3)):
        raised = rf") Tj /F1 7 Tf {rise} Ts (\1) Tj /F1 12 Tf 0 Ts ("
        text = re.sub(rf"\{sign}{{(.*?)}}", raised, text)
    shown = f"BT /F1 12 Tf 10 10 Td ({text}) Tj ET"
    parts = (
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 50]/Contents 4 0 R"
        "/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
        f"<</Length {len(shown)}>>stream\n{shown}\nendstream",
    )
    body, places = "%PDF-1.4\n", list[int]()
    for number, part in enumerate(parts, 1):
        places.append(len(body))
        body += f"{number} 0 obj{part}endobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    start = len(body)
    body += f"xref\n0 5\n0000000000 65535 f \n{table}trailer<</Size 5/Root 1 0 R>>\n"
    return f"{body}startxref\n{start}\n%%EOF".encode()


MAIL = (
    b"From: Ann <ann@example.org>\r\nTo: bob@example.org\r\n"
    b"Date: Mon, 3 Feb 2025 10:00:00 +0100\r\n"
    b"Subject: =?utf-8?B?S2V0dGxlcyDwn6uW?=\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\n'
    b"Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable"
    b"\r\n\r\nThe samovar is hei=DF.\r\n--x\r\nContent-Type: application/pdf\r\n"
    b'Content-Disposition: attachment; filename="offer.pdf"\r\n\r\nJVBERi0=\r\n--x--\r\n'
)


def text_of(markup: str) -> str:
    """The text of a short page."""
    body = f"<title>T</title><main>{markup}</main>".encode()
    return read(body, url="https://e.example/", content_type="text/html", charset="utf-8").text
