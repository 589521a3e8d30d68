"""Pages of guards are told from ordinary pages that hold the same words."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

from searchloop.search_backend.fetch.http import Fetched
from searchloop.search_backend.pages.reading import read_fetched
from searchloop.search_backend.pages.workers import WORKERS
from searchloop.search_backend.plugin import HttpResponse
from searchloop.search_backend.plugin.answers import challenged
from searchloop.search_backend.types import Page
from tests.tables import each_row

URL = "https://site.example/page"


def opened(body: str | bytes, status: int = 200, **headers: str) -> Page:
    """The page as `open_page` has it."""
    raw = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return read_fetched(Fetched(URL, URL, status, "text/html", "utf-8", raw, headers=named))


# Short pages whose topic is what guards, errors and banners say, in some languages.
TOPICS = (
    ("Log in to your account - Help", "Enter your e-mail and password, then solve the CAPTCHA."),
    ("Status: degraded", "We are investigating 503 errors since noon. Please wait."),
    ("HTTP 404", "The 404 Not Found error means that there is no such page."),
    ("503 Service Unavailable", "The status says that the server is not ready yet."),
    ("429 Too Many Requests", "The client has sent too many requests in a given time."),
    ("Cookie policy", "We store four cookies on your device. JavaScript must be enabled for maps."),
    ("Kurz gemeldet", "Berlin: Der Zugang zum Platz wurde am Abend verweigert."),
    ("访问被拒绝 怎么办", "出现此提示时，请检查文件权限。验证码错误时请重试。"),
    ("アクセスが拒否されました", "このエラーの原因はファイルの権限です。"),
    ("Доступ запрещён", "Ошибка 403 означает, что у вас нет прав на файл."),
    ("Acceso denegado", "El error significa que no tiene permisos para el archivo."),
    ("로그인", "로봇이 아닙니다 라는 문구를 누른 뒤 로그인 단추를 누르세요."),
    ("หน้าไม่พบ", "ไม่พบหน้าเว็บ หมายถึงรหัส 404"),
    ("Bot protection", "Our product stops bots: verify you are human in one click."),
    ("Maintenance", "The harbour crane is down for maintenance until five in the evening."),
    ("Unusual traffic", "Unusual traffic from your computer network was seen on the A9 today."),
    ("Status", "All systems operational."),
    ("访问被拒绝", "《访问被拒绝》是一部2010年出版的书。"),
    ("Request rejected", "The request rejected by the town was for a crane."),
    ("One moment, please...", "It is a song that Dinah sang in the spring of 1961."),
    (
        "Just a moment...",
        "Press &amp; Hold to confirm you are a human and not a bot. Ref 18.",
    ),
    ("403 Forbidden explained", "You have been blocked if you see a Ray ID, says Cloudflare."),
    ("Are you a robot? A quiz", "I'm not a robot, said the robot. Access denied, said the door."),
    ("Verifying you are human", "Cloudflare shows this while checking if a connection is secure."),
)
ASIDE = (
    "{}",
    "{}<script src=https://challenges.cloudflare.com/turnstile/v0/api.js></script>",
    "<noscript>You need to enable JavaScript to run this app.</noscript>{}",
    "{}<div class=h-captcha data-sitekey=x></div><form><input type=email></form>",
    "<script>" + "var a=1;" * 3000 + "</script>{}",
    "{}<div class=g-recaptcha data-size=invisible></div>",
    "{}<p><a href='https://o.example/?__cf_chl_tk=x'>More</a>",
    "<script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script>"
    "<script>window.__CF$cv$params={{r:'8a',t:'MTc='}}</script>{}",
    "<script src='https://client.px-cloud.net/PXabc/main.min.js'></script>"
    "<script>window._pxAppId='PXabc'</script>{}",
    "{}<script src='/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3'></script>",
    "<script src='https://a1.token.awswaf.com/a1/challenge.js' defer></script>{}",
    '{}<pre><code>&lt;div id="px-captcha"&gt; window._cf_chl_opt gokuProps</code></pre>',
    "<!-- <div id='challenge-form'> -->{}<script src='https://js.hcaptcha.com/1/api.js'></script>",
    "<link rel=preconnect href=https://ct.captcha-delivery.com>{}",
    "<meta http-equiv=Content-Security-Policy content='script-src captcha.px-cdn.net'>{}",
)


@each_row(("topic", "aside"), [*product(TOPICS, ASIDE)])
def test_a_short_page_on_the_matter_is_read(topic: tuple[str, str], aside: str) -> None:
    """Neither a guard nor an empty shell: many pages of one or two sentences."""
    title, text = topic
    page = opened(f"<title>{title}</title><body>{aside.format(f'<h1>{title}</h1><p>{text}</p>')}")
    assert (page.status, page.error) == ("ok", None)
    assert text.split()[-1] in page.text


def test_a_page_without_scripts_needs_none() -> None:
    """It may tell how scripts are switched on."""
    told = "To enable JavaScript in Firefox, open about:config."
    assert opened(f"<title>Enable JavaScript</title><p>{told}").text == told
    assert opened(f"<title>Enable JavaScript</title><p>{told}<script>a=1</script>").text == ""


@each_row(
    "words",
    [
        "You need to enable JavaScript to run this app.",
        "Bitte aktivieren Sie JavaScript, um diese Seite zu nutzen.",
        "Veuillez activer JavaScript pour utiliser cette application.",
        "Debe habilitar JavaScript para ejecutar esta aplicación.",
        "Пожалуйста, включите JavaScript.",
        "请启用 JavaScript 以运行此应用。",
        "このアプリを使うにはJavaScriptを有効にしてください。",
    ],
)
def test_a_page_that_only_asks_for_scripts_is_a_shell(words: str) -> None:
    """In the text and in what stands there without scripts, in some languages."""
    for shown in (f"<p>{words}</p>", f"<noscript>{words}</noscript><p>Loading, please wait.</p>"):
        page = opened(f"<title>App</title><body>{shown}<script src=/app.js></script>")
        assert (page.status, page.text) == ("needs_js", ""), shown


# What guards of sites show, by their names.
DATA = Path(__file__).parents[1] / "data"
REAL: dict[str, str] = json.loads((DATA / "guards.json").read_text("utf-8"))


@each_row("status", [200, 202, 401, 403, 405, 429, 503])
@each_row("name", REAL)
def test_the_page_of_a_guard_is_known_whatever_its_status(name: str, status: int) -> None:
    """By its elements and scripts; nothing of it is shown."""
    page = opened(REAL[name], status)
    assert (page.status, page.text) == ("blocked", "")
    assert page.error is not None
    assert page.error.remedy
    assert challenged(HttpResponse(200, {}, REAL[name].encode()))


@each_row(
    ("name", "value"),
    [
        ("cf_mitigated", "challenge"),
        ("x_amzn_waf_action", "challenge"),
        ("x_amzn_waf_action", "captcha"),
        ("x_vercel_mitigated", "challenge"),
    ],
)
@each_row("status", [200, 202, 405])
def test_a_header_of_a_guard_is_enough(name: str, value: str, status: int) -> None:
    """However long the page is."""
    page = opened("<p>" + "Words of a page. " * 400, status, **{name: value})
    assert page.status == "blocked"


def test_a_captcha_and_nothing_else_is_a_wall() -> None:
    """What would need scripts to say more is no page."""
    wall = "<title>shop.example</title><div class='h-captcha'></div>"
    assert opened(f"{wall}<noscript>Please enable JavaScript.</noscript>").status == "blocked"
    assert opened(f"{wall}<p>We sell tea.</p>").status == "ok"


def test_a_long_page_is_no_challenge() -> None:
    """An article may even carry the elements that it writes about."""
    story = "<p>" + "The widget above is the one of which this article tells the story. " * 60
    for markup in REAL.values():
        head = markup.replace("<noscript>", "<p>").replace("</noscript>", "")
        page = opened(f"<title>How guards work</title><div>{head}</form></div>{story}")
        assert page.status != "blocked"


def test_the_server_does_not_look_at_markup_itself() -> None:
    """A worker does, which is killed with a page; the server only reads headers."""
    story = b"<title>x</title><div id=challenge-form></div>"
    assert WORKERS.read(story, url=URL, content_type="text/html").challenged
    assert WORKERS.read(story, url=URL, content_type="text/plain").challenged
    assert not WORKERS.read(b"<p>Tea.", url=URL, content_type="text/html").challenged
    refresh = b"<meta http-equiv=refresh content='0;url=/next'>"
    assert WORKERS.refresh_in(refresh, None, "") == "/next"
    assert WORKERS.refresh_in(b"<p>Tea.", "utf-8", "") is None
