"""A file that the user attached to a question: an image, a PDF, or another document with text.

The log has what is known of it; its bytes and its text are in the store, once for equal files. A
page of a document is a source: its address is `attachment://DIGEST/NAME#page=N`, its number that of
the first page plus N - 1.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

SCHEME = "attachment://"
PDF = "application/pdf"
IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
_IMAGE_TOKENS = 1600  # what vendors charge for a picture of about a megapixel


@dataclass(frozen=True, slots=True)
class Attachment:
    """One file: its size in bytes and the SHA-256 of its content in hex.

    An image has its width and height in pixels. A document has the number of its pages (1 for a
    kind without pages), the characters of its text, and the number of its first source, `n`.
    `data` is its content in base64, set only on its way to a model.
    """

    name: str
    media_type: str
    size: int
    digest: str
    width: int = 0
    height: int = 0
    pages: int = 0
    length: int = 0
    n: int = 0
    data: str = ""

    @property
    def is_image(self) -> bool:
        """True for a picture, False for a document."""
        return self.media_type in IMAGES

    @property
    def data_url(self) -> str:
        """The content as an address (RFC 2397)."""
        return f"data:{self.media_type};base64,{self.data}"

    @property
    def tokens(self) -> int:
        """Estimates what it takes of a model's window."""
        return _IMAGE_TOKENS if self.is_image else self.length // 4

    def url(self, page: int = 1) -> str:
        """Returns the address of a page, or of the whole where there are no pages."""
        place = f"#page={page}" if self.media_type == PDF else ""
        return f"{SCHEME}{self.digest[:16]}/{quote(self.name, safe='')}{place}"

    def title(self, page: int = 1) -> str:
        """Returns the title of a page as a source."""
        return f"{self.name}, page {page}" if self.media_type == PDF else self.name

    def label(self) -> str:
        """Returns its name, kind and size in words, as a model reads them."""
        if self.is_image:
            what = f"image, {self.width} x {self.height} pixels"
        elif self.media_type == PDF:
            what = f"PDF, {self.pages} page{'s' * (self.pages != 1)}"
        else:
            what = "document"
        return f"{self.name} ({what}, {size_words(self.size)})"

    def as_dict(self) -> dict[str, Any]:
        """Returns it as JSON, without what it does not have."""
        return {name: value for name, value in asdict(self).items() if value != "" and value != 0}


def size_words(size: int) -> str:
    """Returns a number of bytes in words, in powers of ten, as disks are sold."""
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"
