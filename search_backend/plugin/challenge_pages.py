"""Tells a page that asks for proof of a person from a page about such things.

A guard in front of a site answers with a header, an element or a script of its own, and with little
text. Words never decide about a page: "Forbidden City", a list of HTTP errors and the manual of a
guard hold the same ones. They count as a second sign, and where there is no markup to look at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SHORT_TEXT = 2_000
_FEW_WORDS = 600
_MOST_MARKUP = 512 * 1024
_HEADERS = {
    "cf-mitigated": ("challenge",),
    "x-amzn-waf-action": ("challenge", "captcha"),
    "x-vercel-mitigated": ("challenge", "deny"),
}
# Scripts with their content, and single tags: what a page quotes from others is escaped. Links and
# policies name what a visitor may meet elsewhere.
_PIECE = re.compile(
    rb"<script\b[^>]*>.*?(?:</script|\Z)|<!--.*?(?:-->|\Z)"
    rb"|<(?!a\s|link\s|meta\s[^<>]*content-security)[a-z][^<>]*>",
    re.IGNORECASE | re.DOTALL,
)
# What guards put into pages that they let through is not here: Cloudflare's /scripts/jsd/, the
# sensors of HUMAN and Akamai, the tokens of AWS WAF.
_SIGN = re.compile(
    rb"_cf_chl_opt|__cf_chl_|/cdn-cgi/challenge-platform/h/|cf-browser-verification|chk_jschl"
    rb"|id=[\"']?(?:challenge-(?:form|running|error-text|stage)|captcha-form\b)"
    rb"|px-captcha|_pxBlockedUrl|captcha\.p(?:erimeter)?x[\w-]*\.net|captcha-delivery\.com"
    rb"|<iframe[^<>]*_Incapsula_Resource|distilIdentificationBlock|reeseSkipExpirationCheck"
    rb"|/_sec/(?:cp_challenge|verify)|sec-(?:if-)?cpt-|bm-verify=|triggerInterstitialChallenge"
    rb"|gokuProps|KP_UIDz|sucuri_cloudproxy_js|ddos-guard/js-challenge|check\.ddos-guard\.net"
    rb"|anubis_challenge|/\.within\.website/x/cmd/anubis/|/\.git\.gammaspectra\.live/|/_fs-ch-"
    rb"|/\.well-known/vercel/security/|/errors/validateCaptcha|_____tmd_____|x5secdata"
    rb"|/checkcaptcha|wappass\.baidu\.com/static/captcha|validate\.perfdrive\.com|\bbobcmn\b"
    rb"|\brbzns\b|/__qrator/|sgchallenge|anomaly-modal",
    re.IGNORECASE,
)
_WIDGET = re.compile(
    rb"(?:class|id)=[\"']?[^\"'<>]*(?:g-recaptcha|h-captcha|cf-turnstile|frc-captcha|smart-captcha)"
    rb"(?![^<>]*\binvisible)",
    re.IGNORECASE,
)
# A page with a field for words has a captcha for those who write, not for those who read.
_FIELD = re.compile(
    rb"<(?:textarea|select)\b|<input\b"
    rb"(?![^<>]*\btype=[\"']?(?:hidden|submit|button|checkbox|image|radio|reset))",
    re.IGNORECASE,
)
_UNSCRIPTED = re.compile(
    rb"<noscript\b[^<>]*>(?:[^<]|<(?!/noscript)){0,500}?enable javascript and cookies to continue",
    re.IGNORECASE,
)
_TITLE = re.compile(
    r"(just a moment|attention required! \| cloudflare|access denied|security check|please wait"
    r"|access to this page has been denied|are you (a )?(robot|human)|one more step|robot check"
    r"|pardon our interruption|((bot|human) )?verification( required)?|checking your browser"
    r"|ddos-guard|request blocked|forbidden|verify(ing)? (that )?you are (a )?human"
    r"|client challenge|vercel security checkpoint|making sure you're not a bot|captcha)[\W_]*",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"(verify(ing)?|prove|confirm) (that )?you('re| are)( not)? (a )?(human|person|robot|bot)"
    r"|checking (if the site connection|your browser)"
    r"|(complete|solve) (the|this) (captcha|challenge|security check)"
    r"|unusual (traffic|activity) from your|you have been blocked"
    r"|enable javascript and cookies to continue|are you a robot"
    r"|automated (access|requests|queries)|press (&|and) hold|not a (ro)?bot|ray id|reference #\d",
    re.IGNORECASE,
)


def is_challenge(headers: Mapping[str, str], body: bytes, title: str, text: str) -> bool:
    """Returns whether an answer is the page of a guard; `title` and `text` are what it shows."""
    if any(headers.get(name, "").lower() in values for name, values in _HEADERS.items()):
        return True
    if len(text) > _SHORT_TEXT:
        return False
    markup = body[:_MOST_MARKUP]
    pieces = [piece for piece in _PIECE.findall(markup) if not piece.startswith(b"<!--")]
    if any(_SIGN.search(piece) for piece in pieces):
        return True
    if len(text) > _FEW_WORDS:
        return False
    if any(map(_WIDGET.search, pieces)) and not any(map(_FIELD.match, pieces)):
        return not text or signs_in_words(title, text) > 0
    if not text and not title and b"_Incapsula_Resource" in markup:
        return True  # a script and nothing else
    return _TITLE.fullmatch(title.strip()) is not None and _UNSCRIPTED.search(markup) is not None


def signs_in_words(title: str, text: str) -> int:
    """Returns 1 for a usual title of challenges, 1 for usual words in a short text, or 2."""
    asks = len(text) <= _FEW_WORDS and _WORDS.search(text) is not None
    return asks + (_TITLE.fullmatch(title.strip()) is not None)
