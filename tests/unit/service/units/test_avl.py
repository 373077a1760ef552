"""Lines of a feed: what they say, and one line on what is wrong with them."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ideal_dispatch.errors import InputError
from ideal_dispatch.service.units.avl import LINE_BYTES, LineReader, NewsFields, checksum, lines

NOW = datetime(2026, 3, 1, 8, 20, tzinfo=UTC)
RMC = "GPRMC,081836.00,A,2135.07,N,11714.36,E,023.2,090.0,010326,,,A"
GGA = "GPGGA,081840,2135.10,N,11714.40,E,1,08,0.9,5.0,M,,M,,"
GLL = "GNGLL,2135.10,N,11714.40,E,081840.5,A,A"
AT = "2026-03-01T08:18:36.000Z"


class Listed(LineReader):
    """Reads a line to its end."""

    def read(self, line: str) -> list[NewsFields]:
        return list(super().read(line))


def reader(unit: str = "A117", **fields: str) -> Listed:
    return Listed(unit, fields, lambda: NOW)


def sentence(text: str) -> str:
    return f"${text}*{checksum(text)}"


def tagged(tags: str, text: str) -> str:
    return f"\\{tags}*{checksum(tags)}\\{sentence(text)}"


def feature(place: Any = (117.2, 21.5), **properties: Any) -> str:
    geometry = None if place is None else {"type": "Point", "coordinates": place}
    made = {"type": "Feature", "geometry": geometry, "properties": properties}
    return json.dumps(made)


# --- NMEA ------------------------------------------------------------------------------


def test_the_checksum_of_a_sentence_that_is_printed_everywhere() -> None:
    """An example of the format's public descriptions."""
    assert checksum("GPGLL,5300.97914,N,00259.98174,E,125926,A") == "28"


def test_rmc_has_all() -> None:
    assert reader().read(sentence(RMC)) == [
        {"id": "A117", "at": AT, "lon": 117.2393333, "lat": 21.5845, "heading": 90.0,
         "speed_kmh": 43.0}
    ]  # fmt: skip


def test_south_west_no_motion_and_small_letters() -> None:
    text = "GNRMC,235959.25,A,3351.5,S,15112.0,W,,,311225,,"
    line = f"${text}*{checksum(text).lower()}\r\n"
    assert reader().read(line) == [
        {"id": "A117", "at": "2025-12-31T23:59:59.250Z", "lon": -151.2, "lat": -33.8583333}
    ]


@pytest.mark.parametrize(("text", "at"), [(GGA, "08:18:40.000Z"), (GLL, "08:18:40.500Z")])
def test_gga_and_gll_are_of_the_day_that_is_nearest(text: str, at: str) -> None:
    (news,) = reader().read(sentence(text))
    assert news == {"id": "A117", "at": f"2026-03-01T{at}", "lon": 117.24, "lat": 21.585}


def test_a_fix_before_midnight_that_comes_after_it() -> None:
    late = LineReader("A117", now=lambda: datetime(2026, 3, 1, 0, 0, 1, tzinfo=UTC))
    (news,) = late.read(sentence(GGA.replace("081840", "235959")))
    assert news["at"] == "2026-02-28T23:59:59.000Z"


def test_a_recording_is_dated_by_its_rmc_or_its_tag_block() -> None:
    old = reader()
    old.read(sentence(RMC.replace("010326", "050519")))
    (news,) = old.read(sentence(GGA.replace("081840", "082000")))
    assert news["at"] == "2019-05-05T08:20:00.000Z"
    second = int(datetime(2018, 7, 2, 8, 0, tzinfo=UTC).timestamp())
    (news,) = reader().read(tagged(f"s:A9,c:{second}", GGA))
    assert (news["id"], news["at"]) == ("A9", "2018-07-02T08:18:40.000Z")


def test_the_same_fix_in_other_words_takes_no_speed_away() -> None:
    feed = reader("")
    assert len(feed.read(f"A117,{sentence(RMC)}")) == 1
    assert feed.read(f"A117,{sentence(GGA.replace('081840', '081836'))}") == []
    assert feed.read(f"A117,{sentence(GLL.replace('081840.5', '081836'))}") == []
    assert len(feed.read(f"A118,{sentence(GGA)}")) == 1
    assert len(feed.read(f"A117,{sentence(GGA.replace('081840', '081850'))}")) == 1


@pytest.mark.parametrize(
    ("line", "unit"),
    [
        (f"A9,{sentence(RMC)}", "A9"),
        (f"A9 {sentence(RMC)}", "A9"),
        (f"RTW 1-83-1: {sentence(RMC)}", "RTW 1-83-1"),
        (tagged("s:A9", RMC), "A9"),
        (tagged("g:1-2-34,s:A9,n:7", RMC), "A9"),
        (tagged("n:7", RMC), "A117"),
        (sentence(RMC), "A117"),
        (f"\ufeff  {sentence(RMC)} \r\n", "A117"),
    ],
)
def test_who_it_is(line: str, unit: str) -> None:
    assert [news["id"] for news in reader().read(line)] == [unit]


@pytest.mark.parametrize(
    "text",
    [
        RMC.replace(",A,2135", ",V,2135"),
        "GPRMC,,V,,,,,,,,,,N",
        GGA.replace("E,1,08", "E,0,08"),
        GLL.replace("5,A,A", "5,V,N"),
        "GPGSV,3,1,11,03,03,111,00",
        "GPVTG,090.0,T,,M,023.2,N,43.0,K",
        "PGRMC,A,218.8",
    ],
)
def test_what_says_nothing_of_a_place_is_no_fault(text: str) -> None:
    assert reader().read(sentence(text)) == []


@pytest.mark.parametrize("line", ["", "  \r\n", "\x1e"])
def test_empty_lines_are_no_fault(line: str) -> None:
    assert reader().read(line) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("hello", "neither an NMEA sentence nor a GeoJSON feature"),
        ("[1, 2]", "neither an NMEA sentence nor a GeoJSON feature"),
        (f"${RMC}", "the checksum is missing"),
        (f"${RMC}*0", "the checksum '\\*0' is none"),
        (f"${RMC.replace('2135', '2136')}*{checksum(RMC)}", "the checksum is .., and .. of what"),
        (f"\\s:A9*00\\{sentence(RMC)}", "checksum of the tag block is 00, and"),
        (tagged("s:A9,c:soon", RMC), "the tag block's time 'soon' is none"),
        (sentence(RMC.replace("081836.00", "0818")), "the time '0818' is none, as in 081836"),
        (sentence(RMC.replace("081836", "251836")), "the time '251836.00' is none"),
        (sentence(RMC.replace("010326", "320326")), "the date '320326' is none, as in 230394"),
        (sentence(RMC.replace("010326", "")), "the date '' is none"),
        (sentence(RMC.replace("2135.07", "2175.07")), "the place '2175.07' 'N' is none, as in"),
        (sentence(RMC.replace("2135.07,N", "2135.07,E")), "the place '2135.07' 'E' is none"),
        (sentence(RMC.replace("2135.07,N", "2135.07,")), "the place '2135.07' '' is none"),
        (sentence(RMC.replace("2135.07", "")), "the place '' 'N' is none"),
        (sentence(RMC.replace("11714.36", "19914.36")), "longitude 199.239 .* nowhere on earth"),
        (sentence(RMC.replace("023.2", "fast")), "'fast' is no number"),
        (sentence(RMC.replace("023.2", "nan")), "the speed 'nan' is no number"),
        (sentence("GPRMC,081836,A"), "the date '' is none"),
        ("x" * (LINE_BYTES + 1), "a line of more than 1,000,000 bytes"),
    ],
)  # fmt: skip
def test_a_bad_sentence_is_one_line(line: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        reader().read(line)
    assert "\n" not in str(caught.value)


def test_nobody_named() -> None:
    with pytest.raises(InputError, match="the unit is not named; give --unit, or --field id=NAME"):
        reader("").read(sentence(RMC))


@given(st.text(st.characters(codec="latin-1", exclude_characters="$!*\\,\r\n"), max_size=30))
def test_what_has_its_checksum_is_whole_and_any_changed_letter_is_found(text: str) -> None:
    """XOR finds every change of one letter."""
    whole = f"GPXXX,{text}"
    assert reader().read(sentence(whole)) == []
    for place in range(len(text)):
        broken = f"{text[:place]}{chr(ord(text[place]) ^ 1)}{text[place + 1 :]}"
        if not set(broken) & set("$!*\\,\r\n"):
            with pytest.raises(InputError, match="the checksum is"):
                reader().read(f"$GPXXX,{broken}*{checksum(whole)}")


@given(
    st.floats(-179.99, 179.99), st.floats(-89.99, 89.99), st.floats(0, 80), st.floats(0, 359.9),
    st.datetimes(datetime(2001, 1, 1), datetime(2098, 1, 1)),
)  # fmt: skip
def test_a_place_written_as_nmea_is_read_again(
    lon: float, lat: float, knots: float, course: float, at: datetime
) -> None:
    assume(abs(lon) > 1e-3)  # 0, 0 is no place

    def angle(value: float, sides: str, width: int) -> str:
        degrees, rest = divmod(round(abs(value) * 60e5), 60 * 10**5)
        return f"{degrees:0{width}d}{rest / 1e5:08.5f},{sides[value < 0]}"

    text = (
        f"GNRMC,{at:%H%M%S}.{at.microsecond // 1000:03d},A,{angle(lat, 'NS', 2)},"
        f"{angle(lon, 'EW', 3)},{knots:.3f},{course:.2f},{at:%d%m%y},,,A"
    )
    (news,) = reader().read(sentence(text))
    assert (news["lon"], news["lat"]) == pytest.approx((lon, lat), abs=1e-6)
    assert news["speed_kmh"] == pytest.approx(knots * 1.852, abs=0.06)
    assert abs((news["heading"] - course + 180) % 360 - 180) <= 0.06
    told = datetime.fromisoformat(news["at"]).replace(tzinfo=None)
    assert abs(told - at) < timedelta(milliseconds=2)


# --- GeoJSON ---------------------------------------------------------------------------


def test_a_feature_with_all() -> None:
    line = feature(
        unit="A9", status="3", station="Kelp Point", kind="ALS", heading=12, speed_kmh=40.04,
        at="2026-03-01T16:15:00.5+08:00", call_id="2026-1",
    )  # fmt: skip
    assert reader().read(line) == [
        {"id": "A9", "at": "2026-03-01T08:15:00.500Z", "status": "3", "station": "Kelp Point",
         "kind": "ALS", "call_id": "2026-1", "lon": 117.2, "lat": 21.5, "heading": 12.0,
         "speed_kmh": 40.0}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"id": 7}, {"id": "7"}),
        ({"unit": "A9", "id": 7}, {"id": "A9"}),
        ({}, {"id": "A117"}),
        ({"course": 359.98}, {"heading": 0.0}),
        ({"heading": 360}, {"heading": 0.0}),
        ({"speed": 30}, {"speed_kmh": 30.0}),
        ({"status": 4}, {"status": "4"}),
        ({"time": "2026-03-01T08:15:00Z"}, {"at": "2026-03-01T08:15:00.000Z"}),
        ({"timestamp": 1772352900}, {"at": "2026-03-01T08:15:00.000Z"}),
        ({"timestamp": 1772352900500}, {"at": "2026-03-01T08:15:00.500Z"}),
        ({"unknown": {"deep": 1}, "status": None, "station": "", "speed": 900}, {}),
    ],
)
def test_names_of_properties(properties: dict[str, Any], told: dict[str, Any]) -> None:
    (news,) = reader().read(feature(**properties))
    assert news == {
        "id": "A117", "at": "2026-03-01T08:20:00.000Z", "lon": 117.2, "lat": 21.5, **told
    }  # fmt: skip


def test_what_a_device_does_not_know() -> None:
    (news,) = reader().read(feature(heading=-1, speed=-1))
    assert not {"heading", "speed_kmh"} & set(news)


def test_other_names() -> None:
    line = feature(vehicle="A9", unit="not this", stamp="2026-03-01T08:15:00Z", state="free")
    (news,) = reader(id="vehicle", at="stamp", status="state").read(line)
    assert (news["id"], news["at"], news["status"]) == ("A9", "2026-03-01T08:15:00.000Z", "free")


def test_a_field_that_nobody_knows() -> None:
    with pytest.raises(InputError, match="field 'colour' is not known; known: id, status, "):
        reader(colour="red")


def test_a_status_without_a_place() -> None:
    assert reader().read(feature(None, status="3")) == [
        {"id": "A117", "at": "2026-03-01T08:20:00.000Z", "status": "3"}
    ]


def test_the_id_of_the_feature_itself_and_a_collection() -> None:
    one = {**json.loads(feature()), "id": "A9"}
    two = json.loads(feature(unit="A10"))
    line = json.dumps({"type": "FeatureCollection", "features": [one, two]})
    assert [news["id"] for news in reader("").read(f"\x1e{line}")] == ["A9", "A10"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "not whole JSON"),
        ('{"a":' * 100_00, "not whole JSON"),
        ("{}", "JSON, but no GeoJSON feature"),
        ('{"type": "FeatureCollection"}', "a FeatureCollection without features"),
        ('{"type": "FeatureCollection", "features": [3]}', "JSON, but no GeoJSON feature"),
        (feature(None), "a feature without a place and a status"),
        (feature().replace("Point", "LineString"), "the geometry is 'LineString'; a Point is"),
        (feature(()), r"no coordinates, as in \[117.24, 21.58\]"),
        (feature(("117.2", 21.5)), "the Point has no coordinates"),
        (feature((float("nan"), 21.5)), "the Point has no coordinates"),
        (feature((21.5, 117.2)), "longitude 21.5 and latitude 117.2 are nowhere on earth"),
        (feature((0, 0.0)), "devices without a fix say so"),
        (feature(at="2026-03-01T08:15:00"), "is none with a zone, as in 2026-03-01T08:15:00Z"),
        (feature(at="soon"), "the time 'soon' is none"),
        (feature(at=1e300), "the time '1e\\+300' is none"),
        (feature(at=[]), r"the time '\[\]' is none"),
        (feature(heading="north"), "the heading 'north' is no number"),
        (feature(speed=True), "the speed 'True' is no number"),
        (feature(status=[3]), r"status '\[3\]' is no text of up to 200 letters"),
        (feature(unit="x" * 201), "the unit 'x+' is no text of up to 200 letters"),
        (feature(unit={"a": 1}), "the unit .* is no text"),
        (feature(station="a\nb"), "station 'a.*b' is no text"),
    ],
)
def test_a_bad_feature_is_one_line(line: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        reader().read(line)
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
)


@given(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["Feature", "FeatureCollection"])},
        optional={
            "id": JSON, "features": JSON,
            "geometry": JSON | st.fixed_dictionaries(
                {"type": st.just("Point"), "coordinates": JSON}),
            "properties": JSON | st.dictionaries(
                st.sampled_from(["unit", "status", "at", "speed", "course", "station"]), JSON),
        },
    )
)  # fmt: skip
def test_any_json_is_read_or_refused(document: Any) -> None:
    with suppress(InputError):
        reader().read(json.dumps(document))


@given(st.text(max_size=80) | st.builds("${}".format, st.text(max_size=60)))
def test_any_line_is_read_or_refused(line: str) -> None:
    with suppress(InputError):
        reader().read(line)


# --- lines -----------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_lines_of_pieces(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    expected = whole.split(b"\n") if whole else []
    if expected and not expected[-1]:
        expected.pop()
    assert list(lines(chunks)) == [line.decode("utf-8", "replace") for line in expected]


def test_a_line_without_an_end_takes_no_more_memory_than_one() -> None:
    endless = (b"x" * 10_000 for _ in range(1000))
    (line,) = lines(endless)
    assert len(line) == LINE_BYTES + 1
