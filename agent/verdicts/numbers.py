"""Reads numbers: their value with sign and scale, their unit, in digits, words and CJK numerals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from searchloop.analysis.words import table


class Number(NamedTuple):
    """A value with its scale and sign applied, and its unit's short name or an empty string."""

    value: float
    unit: str

    def same(self, other: Number) -> bool:
        """Tells whether the values are equal and no two units contradict each other."""
        close = abs(self.value - other.value) <= 1e-9 * max(1.0, abs(self.value))
        return close and (not self.unit or not other.unit or self.unit == other.unit)


UNITS = {
    word: unit
    for unit, words in table(
        """
        %: % percent prozent процентов процента процент por-ciento ٪
        pp: prozentpunkt prozentpunkte prozentpunkten 百分点 百分點 ポイント
        km2: km2 quadratkilometer quadratkilometern 平方公里 平方千米 平方キロ 平方キロメートル
        m2: m2 quadratmeter quadratmetern 平方米 平方公尺 平方メートル
        m3: m3 kubikmeter kubikmetern 立方米 立方公尺 立方メートル
        km: km kilometers kilometres kilometer kilometre kilómetros kilómetro kilometern
        kilomètres kilomètre chilometri quilômetros километров километра км كيلومترا كيلومتراً
        كيلومتر किलोमीटर किमी กิโลเมตร 킬로미터 公里 千米 キロ キロメートル
        m: m meters metres meter metre metros metro metern mètres mètre metri
        метров метра метр м مترا متراً متر मीटर เมตร 미터 米 公尺 メートル
        cm: cm centimeters centimetres centimeter zentimeter centímetros centimètres см
        เซนติเมตร 厘米 センチ センチメートル
        mm: mm millimeters millimetres millimeter milímetros millimètres 毫米 ミリ
        mile: mi mile miles meile meilen milla millas milles 英里 マイル
        foot: ft foot feet fuß pie pies pieds 英尺 フィート
        inch: inch inches zoll pulgadas pouces 英寸 インチ
        yard: yard yards
        mph: mph
        kmh: kmh
        kg: kg kilogram kilograms kilogramm kilogramos kilogrammes kilo kilos 公斤 千克 キログラム
        g: g gram grams gramm gramos grammes 克 グラム
        mg: mg milligram milligrams milligramm
        t: t tonne tonnes tonnen toneladas 吨 トン
        ton: ton tons
        lb: lb lbs pfund libras 磅 ポンド
        oz: oz ounce ounces
        degree: ° degree degrees grad grados degrés 度
        celsius: °c ℃ celsius 摄氏度
        fahrenheit: °f ℉ fahrenheit
        s: s sec second seconds sekunde sekunden segundo segundos seconde secondes 秒
        min: min minute minutes minuten minuto minutos 分钟 分間
        h: h hour hours stunde stunden hora horas heure heures 小时 時間
        day: day days tag tage tagen día días jour jours 天 日间 日間
        week: week weeks woche wochen semana semanas semaine semaines 周 週間
        month: month months monat monate monaten mes meses mois 个月 個月 か月 ヶ月 カ月
        year: year years yr yrs jahr jahre jahren año años an ans année années 年间 年間
        decade: decade decades jahrzehnt jahrzehnte décadas décennies
        century: century centuries jahrhundert jahrhunderte siglos siècles 世纪 世紀
        usd: $ usd dollar dollars dólares долларов دولار डॉलर ดอลลาร์ 달러 美元 ドル
        eur: € eur euro euros 欧元 ユーロ
        gbp: £ gbp 英镑
        inr: ₹ inr rupee rupees रुपये रुपए
        krw: ₩ krw won 원
        rub: ₽ rub ruble rubles roubles рублей
        peso: peso pesos
        chf: chf franken
        jpy: ¥ yen jpy 円 日元
        cny: yuan cny rmb 人民币
        kb: kb kilobytes
        mb: mb megabytes
        gb: gb gigabytes
        tb: tb terabytes
        w: w watt watts
        kw: kw kilowatt kilowatts
        megawatt: mw megawatt megawatts
        gw: gw gigawatt gigawatts
        hz: hz hertz
        khz: khz
        mhz: mhz
        ghz: ghz
        v: v volt volts
        ml: ml milliliters millilitres
        l: l liter liters litre litres litros litern 升
        acre: acre acres
        ha: ha hectare hectares hektar hectáreas
        """
    ).items()
    for word in words
}
_SCALES = {
    word: float(value)
    for value, words in table(
        """
        100: hundred hundreds hundert cent cents cien cento
        1000: thousand thousands tausend mil mille mila tsd тысяч тысячи тыс ألف آلاف हज़ार हजार 천
        1e+04: 만
        100000: लाख lakh
        1e+07: करोड़ crore
        1e+08: 억
        1e+06: million millions mn mio millionen millón millones milioni milione milhões milhão
        миллион миллиона миллионов млн مليون ملايين
        1e+09: billion billions bn milliarde milliarden mrd milliard milliards miliardi миллиард
        миллиарда миллиардов млрд مليار مليارات बिलियन
        1e+12: trillion trillions 조
        """
    ).items()
    for word in words
}
_LONG_SCALE = {"billion", "billions", "billionen", "billones", "bilhões"}  # 10**12 outside English
_THAI_SCALES = {"พันล้าน": 1e9, "ล้าน": 1e6, "แสน": 1e5, "หมื่น": 1e4, "พัน": 1e3}
_CJK_SCALES = {
    "十": 1e1,
    "百": 1e2,
    "千": 1e3,
    "万": 1e4,
    "萬": 1e4,
    "亿": 1e8,
    "億": 1e8,
    "兆": 1e12,
}
_CJK_DIGITS = {c: i for i, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_CURRENCY = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "￥": "jpy", "₹": "inr", "₩": "krw"}
_MINUS = re.compile(
    r"(?:\b(?:minus|negative|moins|menos|meno|минус)|零下|マイナス|氷点下|负|負|마이너스)\s?\Z",
    re.IGNORECASE,
)
_SQUARE = frozenset(("square", "sq", "carrés", "carré", "cuadrados", "quadrati", "квадратных"))
_CUBIC = frozenset(["cubic", "cubes", "cube", "cúbicos", "cubi", "кубических"])
_POINTS = frozenset(
    (
        ("percentage", "points"),
        ("percentage", "point"),
        ("points", "de"),
        ("points", "percentage"),
        ("puntos", "porcentuales"),
        ("punti", "percentuali"),
        ("pontos", "percentuais"),
        ("процентных", "пункта"),
        ("процентных", "пунктов"),
    )
)
_OF = frozenset(("de", "d", "of", "di"))


def _words() -> dict[str, dict[str, int]]:
    """Builds {language: {word: value}}: zero to nineteen, then the tens; `-` stands for no word."""
    tables = table(
        """
        en: zero - two three four five six seven eight nine ten eleven twelve thirteen fourteen
        fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty
        ninety
        de: null - zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn
        fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig
        siebzig achtzig neunzig
        fr: zéro - deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze
        seize dix-sept dix-huit dix-neuf vingt trente quarante cinquante soixante soixante-dix
        quatre-vingts quatre-vingt-dix
        es: cero - dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince
        dieciséis diecisiete dieciocho diecinueve veinte treinta cuarenta cincuenta sesenta
        setenta ochenta noventa
        it: zero - due tre quattro cinque sei sette otto nove dieci undici dodici tredici
        quattordici quindici sedici diciassette diciotto diciannove venti trenta quaranta
        cinquanta sessanta settanta ottanta novanta
        pt: zero - dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze
        dezesseis dezessete dezoito dezenove vinte trinta quarenta cinquenta sessenta setenta
        oitenta noventa
        """
    )
    values = (*range(20), *range(20, 100, 10))
    found = {
        lang: {w: v for w, v in zip(words, values, strict=True) if w != "-"}
        for lang, words in tables.items()
    }
    found["pt"] |= {"duas": 2}
    units = [(w, v) for w, v in found["de"].items() if 0 < v < 10] + [("ein", 1)]
    small = [(w, v) for w, v in found["de"].items() if 1 < v < 20] + [("ein", 1)]
    tens = [(w, v) for w, v in found["de"].items() if v >= 20]
    found["de"] |= {f"{u}und{t}": n + m for u, n in units for t, m in tens}
    found["de"] |= {f"{u}hundert": 100 * n for u, n in small}
    found["de"] |= {f"{u}tausend": 1000 * n for u, n in [*small, *tens]}
    return found


_NUMBER_WORDS = _words()
_GROUPED = re.compile(r"\d{1,3}(?:([,.'’\u00a0\u202f\u2009 ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?\Z")
_CJK_RUN = re.compile("[〇零一二三四五六七八九十百千万萬亿億兆两兩]+")
_CJK_COUNTED = re.compile(
    "年|月|日|天|岁|歳|个|個|名|人|位|次|座|部|场|支|条|种|倍|所|度|点|分|回|つ|本|匹|台|册|冊|世纪|世紀|票|国"
)
_CJK_PLAIN = re.compile("[第统統之进進同专專唯万单單每另]\\Z")
_CJK_UNIT = re.compile(
    "|".join(sorted((re.escape(u) for u in UNITS if ord(u[0]) >= 0x0E00), key=len, reverse=True))
)


@lru_cache(maxsize=8192)
def digits(text: str, lang: str = "") -> float:
    """Reads digits with separators: `81,365`, `81 365`, `1.234.567,8`, `3,5`.

    One group of three behind one full stop is a fraction in English and thousands elsewhere; behind
    one comma it is thousands, since translated texts keep the original's digits.
    """
    grouped = _GROUPED.match(text)
    if grouped and text[0] != "0" and not (
        lang == "en" and grouped[1] == "." and text.count(".") == 1 and "," not in text
    ):  # fmt: skip
        whole, _, rest = text.partition({",": ".", ".": ","}.get(grouped[1], "."))
        if grouped[1] not in ",." and "," in text:
            whole, _, rest = text.partition(",")
        text = re.sub(r"\D", "", whole) + (f".{rest}" if rest else "")
    else:
        text = text.replace(",", ".")
        if text.count(".") > 1:  # a version or a date
            text = text.replace(".", "")
    return float(re.sub(r"[^\d.]", "", text)[:300])


def sign(text: str, start: int) -> int:
    """Returns -1 where a minus stands directly before a number and is no dash or hyphen."""
    if _MINUS.search(text, max(0, start - 10), start):
        return -1
    before = text[max(0, start - 4) : start]
    if before[-1:] in _CURRENCY:
        before = before[:-1]
    if before[-1:] not in ("-", "−", "–", "－"):
        return 1
    wide = before[-2:-1] > "\u2e80" and not before[-3:-2].isdigit()  # `是-5`, but `2005年-2010年`
    return -1 if wide or not before[-2:-1].isalnum() else 1


def unit_before(text: str, start: int) -> str:
    """Returns the currency whose sign stands before a number."""
    return _CURRENCY.get(text[start - 1 : start].strip(), "") if start else ""


def word_value(word: str, lang: str) -> int | None:
    """Returns the value of a number word; English is understood where the language is unknown."""
    return _NUMBER_WORDS.get(lang or "en", {}).get(word)


def scale(word: str, lang: str) -> float:
    """Returns what a word such as `million` multiplies by, or 0."""
    if word in _LONG_SCALE and lang not in ("en", ""):
        return 1e12
    if word == "mil" and lang not in ("es", "pt"):
        return 0
    return _SCALES.get(word, 0)


def follow(
    rest: Callable[[int], tuple[str, int] | None], at: int, lang: str
) -> tuple[float, str, int]:
    """Reads scale words and a unit behind a number.

    `rest(k)` returns the k-th word behind it with its index, or None if something is between.
    Returns (factor, unit, words read for the scale).
    """
    factor, taken = 1.0, at
    while (found := rest(taken)) and (by := scale(found[0], lang)) and taken < at + 2:
        factor, taken = factor * by, taken + 1
    found = rest(taken)
    if found and found[0] in _OF and taken > at:
        found, taken = rest(taken + 1), taken + 1
        return factor, UNITS.get(found[0], "") if found else "", taken - 1 - at
    unit = UNITS.get(found[0], "") if found else ""
    behind = rest(taken + 1) if found else None
    pair = (found[0], behind[0]) if found and behind else ("", "")
    if pair in _POINTS:
        unit = "pp"
    elif power := "2" * (not _SQUARE.isdisjoint(pair)) or "3" * (not _CUBIC.isdisjoint(pair)):
        unit = (unit or UNITS.get(pair[1], "")) + power
    elif pair == ("km", "h") or pair == ("kilometres", "per"):
        unit = "kmh"
    if found and found[0] in ("per", "pour", "por", "per-cent"):
        behind = rest(taken + 1)
        unit = "%" if behind and behind[0] in ("cent", "ciento", "cento") else ""
    return factor, unit, taken - at


def cjk_scale(text: str, at: int) -> tuple[float, int, str]:
    """Reads `万`, `亿`, ... and a unit behind digits; returns (factor, end, unit)."""
    factor = 1.0
    while by := _CJK_SCALES.get(text[at : at + 1], 0.0):
        factor, at = factor * by, at + 1
    for word, by in _THAI_SCALES.items():
        if text.startswith(word, at):
            factor, at = factor * by, at + len(word)
            break
    unit = _CJK_UNIT.match(text, at + (text[at : at + 1] in ("个", "個", " ")))
    return factor, at, UNITS[unit[0]] if unit else ""


def cjk_numbers(text: str, start: int, end: int) -> Iterator[tuple[Number, int, int]]:
    """Yields the numbers written in CJK numerals: several numerals, or one before a counter."""
    for run in _CJK_RUN.finditer(text, start, end):
        counted = _CJK_COUNTED.match(text, run.end())
        unit = _CJK_UNIT.match(text, run.end())
        share = text[max(0, run.start() - 3) : run.start()] == "百分之"
        single = (
            not share
            and len(run[0]) == 1
            and (
                _CJK_PLAIN.search(text[max(0, run.start() - 1) : run.start()])
                or run[0] in "百千万萬亿億兆"
            )
        )
        if (counted or unit or share or len(run[0]) > 2) and not single:
            value = _cjk_value(run[0])
            name = "%" if share else UNITS[unit[0]] if unit else ""
            yield Number(value, name), run.start() - 3 * share, run.end()


def _cjk_value(text: str) -> float:
    if not any(c in _CJK_SCALES for c in text):
        return float("".join(str(_CJK_DIGITS[c]) for c in text))
    total = section = digit = 0.0
    for c in text:
        by = _CJK_SCALES.get(c, 0.0)
        if not by:
            digit = digit * 10 + _CJK_DIGITS[c]
        elif by < 1e4:
            section, digit = section + (digit or 1) * by, 0
        else:
            total, section, digit = (total + section + digit or 1) * by, 0, 0
    return total + section + digit
