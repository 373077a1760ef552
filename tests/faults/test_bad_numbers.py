"""NaN, infinity and numbers beyond all bounds are refused in words, not with a crash."""

from collections.abc import Iterator

import pytest

from tests.faults.service_faults import ASK
from tests.service_town import Local, Town, application, bearer, local


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Local]:
    with local(application(town.settings("numbers.toml"))) as opened:
        yield opened


NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, '"NaN"', "1e-999", "null")


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("field", ["lon", "accuracy_m", "threshold_s", "rainfall_mm", "units"])
def test_nan_inf_and_1e999(client: Local, town: Town, field: str, number: str) -> None:
    place = f'"lon": {number if field == "lon" else 114.005}, "lat": 22.004'
    if field == "accuracy_m":
        place += f', "accuracy_m": {number}'
    body = f'{{"call_id": "n", "received_at": "2026-01-01T00:00:00Z", "location": {{{place}}}'
    if field == "threshold_s":
        body += f', "threshold_s": {number}'
    if field == "rainfall_mm":
        body += f', "context": {{"weather": {{"rainfall_mm": {number}}}}}'
    if field == "units":
        body += f', "depots": [{{"name": "D0", "units": {number}}}]'
    headers = {**bearer("cad"), "Content-Type": "application/json"}
    answer = client.post(ASK, content=body + "}", headers=headers)
    sound = number in ("1e-999", "null") and field not in ("lon", "units")
    sound |= (field, number) == ("lon", "1e-999")
    assert answer.status_code == (200 if sound else 422), answer.text
    if not sound:
        error = answer.json()["error"]
        assert error["code"] == "invalid"
        assert "\n" not in error["message"]


@pytest.mark.parametrize(
    "body",
    ["", "{", "null", "[]", '"x"', "1", '{"call_id": "\\ud800"}', "{" * 30,
     '{"a": 1' + "0" * 5000 + "}"],
)  # fmt: skip
def test_bodies_that_are_no_request(client: Local, body: str | bytes) -> None:
    headers = {**bearer("cad"), "Content-Type": "application/json"}
    answer = client.post(ASK, content=body, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "invalid"
