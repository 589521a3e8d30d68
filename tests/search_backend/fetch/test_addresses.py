"""The address table: vectors by class, and the whole space against a slow reading of the rules."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from searchloop.search_backend.fetch.ip_addresses import (
    canonical,
    is_public,
    parse,
    parse_ranges,
    why_refused,
)
from searchloop.search_backend.types import SettingError
from tests.tables import each_row

REFUSED = """
0.0.0.0 0.0.0.1 0.255.255.255 10.0.0.0 10.0.0.1 10.255.255.255 100.64.0.0 100.64.0.1
100.100.100.200 100.127.255.255 127.0.0.0 127.0.0.1 127.0.0.53 127.1.2.3 127.255.255.255
169.254.0.0 169.254.0.1 169.254.169.253 169.254.169.254 169.254.170.2 169.254.255.255 172.16.0.0
172.16.0.1 172.17.0.1 172.20.10.1 172.31.255.255 192.0.0.0 192.0.0.1 192.0.0.8 192.0.0.9
192.0.0.10 192.0.0.170 192.0.0.171 192.0.0.192 192.0.0.255 192.0.2.0 192.0.2.1 192.0.2.255
192.31.196.0 192.31.196.1 192.52.193.1 192.88.99.0 192.88.99.1 192.88.99.255 192.168.0.0
192.168.0.1 192.168.1.254 192.168.255.255 192.175.48.1 192.175.48.42 198.18.0.0 198.18.0.1
198.19.255.255 198.51.100.0 198.51.100.7 198.51.100.255 203.0.113.0 203.0.113.9 203.0.113.255
224.0.0.1 224.0.0.251 232.1.1.1 233.252.0.1 239.255.255.250 239.255.255.255 240.0.0.0 240.0.0.1
254.1.1.1 255.255.255.254 255.255.255.255 168.63.129.16 :: ::1 ::2 ::7f00:1 ::127.0.0.1 ::10.0.0.1
::8.8.8.8 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:a9fe:a9fe ::ffff:8.8.8.8 ::ffff:0:7f00:1
::ffff:0:127.0.0.1 ::ffff:0:a9fe:a9fe ::ffff:0:808:808 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe
64:ff9b::10.0.0.1 64:ff9b::8.8.8.8 64:ff9b:0:0:1::1 64:ff9b:1::1 64:ff9b:1:a00:0:100::
64:ff9b:1:ffff::a00:1 100:: 100::1 100:0:0:1::1 1::1 200::1 400::1 1fff:ffff::1 2001:: 2001::1
2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:0:7f00:1:: 2001:1::1 2001:1::2 2001:1::3 2001:2::1
2001:2:0:ffff::1 2001:3::1 2001:4:112::1 2001:5::1 2001:10::1 2001:1f::1 2001:20::1 2001:2f::1
2001:30::1 2001:3f::1 2001:1ff::1 2001:db8::1 2001:db8:ffff::1 2002::1 2002:7f00:1::
2002:a9fe:a9fe:: 2002:a00:1::1 2002:808:808::1 2620:4f:8000::1 3ffe::1 3ffe:831f::1 3fff::1
3fff:fff:ffff::1 4000::1 5f00::1 5f00:ffff::1 6000::1 8000::1 c000::1 e000::1 f000::1 f800::1
fc00::1 fc00:ffff::1 fd00::1 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42 fd12:3456:789a::1
fdff:ffff::1 fe00::1 fe80::1 fe80::a9fe:a9fe febf::1 fec0::1 feff::1 ff00::1 ff01::1 ff02::1
ff02::fb ff05::1:3 ff0e::1 ffff::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
2001:4860::5efe:127.0.0.1 2001:4860::5efe:a00:1 2606:4700::200:5efe:c0a8:1
2606:4700::100:5efe:a9fe:a9fe 2a00:1450:4001:0:300:5efe:7f00:1 2400:cb00::5efe:a83f:8110
""".split()  # noqa: SIM905 - as a list it would fill pages
PUBLIC = """
1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 12.34.56.78 93.184.216.34 100.63.255.255
100.128.0.0 126.255.255.255 128.0.0.0 151.101.1.69 168.63.129.15 168.63.129.17 169.253.255.255
169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0
192.31.195.255 192.31.197.0 192.52.192.255 192.52.194.0 192.88.98.255 192.88.100.0 192.167.255.255
192.169.0.0 192.175.47.255 192.175.49.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0
203.0.112.255 203.0.114.0 223.255.255.255 2000::1 2001:200::1 2001:4860:4860::8888
2001:4860:4860::8844 2001:db7:ffff::1 2001:db9::1 2001:ffff::1 2003::1 2400:cb00::1
2606:4700:4700::1111 2606:2800:220:1:248:1893:25c8:1946 2620:4f:7fff::1 2620:4f:8001::1
2620:fe::fe 2a00:1450:4001:830::200e 2a03:2880:f12f:83:face:b00c:0:25de 2c0f:fb50::1 3ffd::1
3fff:1000::1 2001:4860::5efe:808:808 2606:4700::200:5efe:1.1.1.1 2606:4700::5eff:a00:1
""".split()  # noqa: SIM905 - as a list it would fill pages
MALFORMED = [
    *("", " ", "1", "127.1", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1..2.3", "1.2.3.4.", "a.b.c.d"),
    *("01.2.3.4", "010.0.0.1", "0x7f.0.0.1", "256.1.1.1", "1.2.3.999", "2130706433", "0x7f000001"),
    *("1.2.3.4\n", " 1.2.3.4", "1.2.3.+4", "1.2.3.-4", "1.2.3.4/32", "1.2.3.4:80", "localhost"),
    *("\uff11.2.3.4", "\u0661.2.3.4", "1\u30022.3.4", ":", ":::", "1::2::3", "12345::", ":" * 50),
    *("g::1", "::1%lo", "fe80::1%25eth0", "[::1]", "::1/128", "v1.a", "::1\n", " ::1"),
    *("::ffff:127.1", "::ffff:010.0.0.1", "::256.1.1.1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9"),
]


@each_row("address", REFUSED)
def test_what_is_not_a_public_host_is_refused_with_a_reason(address: str) -> None:
    """Every class of special address is refused, in text and packed, literal and resolved."""
    assert why_refused(address)
    assert not is_public(address)
    packed = ipaddress.ip_address(address).packed
    assert not is_public(packed)
    if address != "64:ff9b::8.8.8.8":
        assert why_refused(address, resolved=True)
        assert why_refused(packed, resolved=True)


@each_row("address", PUBLIC)
def test_the_neighbours_of_special_blocks_are_public(address: str) -> None:
    """Nothing beyond the special blocks is lost."""
    assert why_refused(address) is None
    assert is_public(ipaddress.ip_address(address).packed)


@each_row("address", MALFORMED)
def test_only_the_usual_spelling_is_an_address(address: str) -> None:
    """A spelling that programs read differently is no address, so it is not public either."""
    assert parse(address) is None
    assert canonical(address) is None
    assert not is_public(address)


def test_nat64_counts_as_what_it_carries_only_when_it_was_resolved() -> None:
    """IPv6-only networks reach IPv4 by it, but nobody writes such an address by hand."""
    assert why_refused("64:ff9b::808:808", resolved=True) is None
    assert why_refused("64:ff9b::808:808")
    assert why_refused("64:ff9b::7f00:1", resolved=True)
    assert why_refused("64:ff9b::1:808:808", resolved=True)
    assert why_refused("64:ff9b:1::808:808", resolved=True)


# A second reading of the registries, slow and in other terms: octets and hextets, no table.
def reference_v4(number: int) -> bool:
    a, b, c, d = number.to_bytes(4, "big")
    return not (
        a in (0, 10, 127)
        or a >= 224
        or (a == 100 and b // 64 == 1)
        or (a == 169 and b == 254)
        or (a == 172 and b // 16 == 1)
        or (a == 192 and b == 168)
        or (a == 198 and b in (18, 19))
        or (a, b, c) in {(192, 0, 0), (192, 0, 2), (192, 88, 99), (198, 51, 100), (203, 0, 113)}
        or (a, b, c) in {(192, 31, 196), (192, 52, 193), (192, 175, 48)}
        or (a, b, c, d) == (168, 63, 129, 16)
    )


def reference_v6(number: int) -> bool:
    h = [number >> shift & 0xFFFF for shift in range(112, -1, -16)]
    special = (
        not 0x2000 <= h[0] <= 0x3FFF
        or (h[0] == 0x2001 and h[1] < 0x200)
        or (h[0] == 0x2001 and h[1] == 0xDB8)
        or h[0] in (0x2002, 0x3FFE)
        or (h[0] == 0x3FFF and h[1] < 0x1000)
        or h[:3] == [0x2620, 0x4F, 0x8000]
    )
    marked = h[4] in (0, 0x100, 0x200, 0x300) and h[5] == 0x5EFE
    return not special and not (marked and not reference_v4(number & 0xFFFFFFFF))


EDGES_V4 = sorted(
    {
        edge
        for text in REFUSED + PUBLIC
        if ":" not in text
        for edge in [int(ipaddress.IPv4Address(text)) + step for step in (-1, 0, 1)]
        if 0 <= edge < 1 << 32
    }
)
EDGES_V6 = [int(ipaddress.IPv6Address(text)) for text in REFUSED + PUBLIC if ":" in text]
ipv4 = st.one_of(st.integers(0, (1 << 32) - 1), st.sampled_from(EDGES_V4))
ipv6 = st.one_of(
    st.integers(0, (1 << 128) - 1),
    st.integers(0x2000 << 112, (0x4000 << 112) - 1),
    st.sampled_from(EDGES_V6),
    st.tuples(st.sampled_from(EDGES_V6), st.integers(0, 127)).map(lambda t: t[0] ^ 1 << t[1]),
)


@given(ipv4)
def test_ipv4_verdicts_are_those_of_the_slow_reading(number: int) -> None:
    """Anywhere in the space the table says what the registries say."""
    assert is_public(number.to_bytes(4, "big")) == reference_v4(number)
    assert is_public(str(ipaddress.IPv4Address(number))) == reference_v4(number)


@given(ipv6)
@example(0x2001_4860 << 96 | 0x5EFE << 32 | 0x7F000001)
def test_ipv6_verdicts_are_those_of_the_slow_reading(number: int) -> None:
    """Anywhere in the space the table says what the registries say."""
    assert is_public(number.to_bytes(16, "big")) == reference_v6(number)
    assert is_public(str(ipaddress.IPv6Address(number))) == reference_v6(number)


def forms(v4: int, prefix: int) -> list[int]:
    """IPv6 addresses that some network unpacks to `v4`. `prefix` is 64 bits."""
    return [
        v4,  # compatible
        0xFFFF << 32 | v4,  # mapped
        0xFFFF << 48 | v4,  # translated
        0x0064_FF9B << 96 | v4,  # NAT64
        0x0064_FF9B_0001 << 80 | (v4 >> 16) << 64 | (v4 & 0xFFFF) << 40,  # local NAT64, /48
        0x0064_FF9B_0001 << 80 | v4,  # local NAT64, /96
        0x2002 << 112 | v4 << 80,  # 6to4
        0x2002 << 112 | v4 << 80 | 1,
        0x2001 << 112 | v4 << 64,  # Teredo server
        0x2001 << 112 | 0x0808_0808 << 64 | (v4 ^ 0xFFFF_FFFF),  # Teredo client
        *(prefix << 64 | iid << 32 | v4 for iid in (0x5EFE, 0x0100_5EFE, 0x0200_5EFE, 0x0300_5EFE)),
    ]


@given(ipv4.filter(lambda n: not reference_v4(n)), st.integers(0x2000 << 48, (0x4000 << 48) - 1))
def test_no_ipv6_form_hides_a_refused_ipv4_address(v4: int, prefix: int) -> None:
    """What is refused as IPv4 is refused in every IPv6 form, also when a resolver gives it."""
    for number in forms(v4, prefix):
        packed = number.to_bytes(16, "big")
        assert why_refused(packed)
        assert why_refused(packed, resolved=True)


@given(ipv6)
def test_canonical_spelling_means_the_same_address(number: int) -> None:
    """However an address is spelled, its canonical form is one and is the same number."""
    long = ipaddress.IPv6Address(number).exploded.upper()
    short = canonical(long)
    assert short is not None
    assert parse(short) == parse(long) == ipaddress.IPv6Address(number)
    assert canonical(short) == short


@pytest.mark.parametrize(
    ("ranges", "inside", "outside"),
    [
        (["198.18.0.0/15"], ["198.18.0.1", "198.19.255.255"], ["10.0.0.1", "127.0.0.1"]),
        (["fc00::/18"], ["fc00::1", "fc00:3fff::1"], ["fc00:4000::1", "fd00::1", "fe80::1"]),
        (
            ["10.1.0.0/16", " 192.168.7.0/24 "],
            ["10.1.2.3", "192.168.7.9"],
            ["10.2.0.1", "192.168.8.1"],
        ),
        (["100.64.0.0/10"], ["100.64.0.1", "100.101.102.103"], ["100.100.100.200"]),
        (["fd00::/16"], ["fd00::1"], ["fd00:ec2::254", "fd00:42::42", "fd00::5efe:7f00:1"]),
    ],
)
def test_ranges_open_what_they_name_and_never_metadata(
    ranges: list[str], inside: list[str], outside: list[str]
) -> None:
    """A stand-in network can be opened; metadata services inside it stay closed."""
    allow = parse_ranges(ranges)
    assert [a for a in inside if why_refused(a, allow=allow)] == []
    assert [a for a in outside if not why_refused(a, allow=allow)] == []
    assert all(why_refused(a) for a in inside)


@each_row(
    "text",
    [
        *("0.0.0.0/0", "::/0", "0.0.0.0/1", "128.0.0.0/1", "8.0.0.0/7", "10.0.0.0/7", "fc00::/7"),
        *("fd00::/8", "2000::/3", "127.0.0.0/8", "127.0.0.1/32", "::1/128", "::/128", "0.0.0.0/8"),
        *("169.254.0.0/16", "169.254.169.254/32", "168.63.129.16/32", "100.100.100.200/32"),
        *("fe80::/10", "fe80::/64", "fd00:ec2::254/128", "fd00:ec2::/32", "::ffff:10.0.0.0/104"),
        *("64:ff9b::/96", "2002:a00::/24", "224.0.0.0/8", "240.0.0.0/8", "255.255.255.255/32"),
        *("8.8.8.0/24", "2606:4700::/32", "192.0.2.0/24", "172.0.0.0/8", "192.160.0.0/12"),
        *("", "/", "10.0.0.0", "10.0.0.0/", "10.0.0.1/8", "10/8", "10.0.0.0/33", "10.0.0.0/08"),
        *("10.0.0.0/-1", "10.0.0.0/8 ,", "10.0.0.0-10.0.0.9", "fd00::/129", "lan", "10.0.0.0/٨"),
    ],
)
def test_ranges_that_would_open_too_much_are_refused(text: str) -> None:
    """Very wide ranges, loopback, link-local, metadata and what is no range end with an error that
    quotes the setting."""
    with pytest.raises(SettingError) as caught:
        parse_ranges(["198.18.0.0/15", text])
    assert text.strip() in caught.value.message
    assert caught.value.remedy
