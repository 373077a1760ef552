"""NaN, infinity and numbers beyond all bounds are refused in words, not with a crash."""

from collections.abc import Iterator

import pytest

from tests.service_town import ASK, Local, Town, application, bearer, local


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("numbers.toml"))) as opened:
        yield opened


NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, '"NaN"', "1e-999", "null")
HEADERS = {**bearer("cad"), "Content-Type": "application/json"}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("field", ["lon", "accuracy_m", "threshold_s", "rainfall_mm"])
def test_nan_inf_and_1e999(client: Local, field: str, number: str) -> None:
    place = f'"lon": {number if field == "lon" else 114.005}, "lat": 22.004'
    if field == "accuracy_m":
        place += f', "accuracy_m": {number}'
    body = f'{{"call_id": "n", "received_at": "2026-01-01T00:00:00Z", "location": {{{place}}}'
    if field == "threshold_s":
        body += f', "threshold_s": {number}'
    if field == "rainfall_mm":
        body += f', "context": {{"weather": {{"rainfall_mm": {number}}}}}'
    answer = client.post(ASK, content=body + "}", headers=HEADERS)
    sound = number in ("1e-999", "null") if field != "lon" else number == "1e-999"
    assert answer.status_code == (200 if sound else 422), answer.text
    assert sound or answer.json()["error"]["code"] == "invalid"


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    "news",
    ['{"depot": "D0", "free": %s}',
     '{"id": "A", "depot": "D0", "status": "available", "lat": 22.0, "lon": %s}'],
)  # fmt: skip
def test_news_of_units(client: Local, news: str, number: str) -> None:
    answer = client.put("/v1/units", content=f"[{news % number}]", headers=HEADERS)
    sound = number == "1e-999" and "lon" in news
    assert answer.status_code == (200 if sound else 422), answer.text


@pytest.mark.parametrize(
    "body",
    ["", "{", "null", "[]", '"x"', "1", '{"call_id": "\\ud800"}', "{" * 30,
     '{"a": 1' + "0" * 5000 + "}"],
)  # fmt: skip
def test_bodies_that_are_no_request(client: Local, body: str | bytes) -> None:
    answer = client.post(ASK, content=body, headers=HEADERS)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "invalid"
