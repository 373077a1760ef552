from pathlib import Path

import pytest

from ideal_dispatch.errors import FileFormatError
from ideal_dispatch.records.prepare import NEMSIS
from ideal_dispatch.records.raw_records import RawRecords, read_nemsis

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<EMSDataSet xmlns="http://www.nemsis.org" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><Header><DemographicGroup/>'
)
REPORT = """<PatientCareReport UUID="1">
<eResponse><eResponse.AgencyGroup><eResponse.01>X</eResponse.01></eResponse.AgencyGroup>
<eResponse.03>INC-1</eResponse.03><eResponse.13>7</eResponse.13><eResponse.14>A1</eResponse.14>
<eResponse.17>43.000100,7.000200</eResponse.17></eResponse>
<ePatient><ePatient.PatientNameGroup><ePatient.02>Secretname</ePatient.02>
</ePatient.PatientNameGroup><ePatient.15>77</ePatient.15></ePatient>
<eTimes><eTimes.01>2024-05-01T11:58:00-05:00</eTimes.01>
<eTimes.03>2024-05-01T11:59:00-05:00</eTimes.03><eTimes.05>2024-05-01T12:00:30-05:00</eTimes.05>
<eTimes.06>2024-05-01T12:06:00-05:00</eTimes.06></eTimes>
<eScene><eScene.11>43.010000,7.010000</eScene.11><eScene.15>1 Secret Street</eScene.15></eScene>
<eArrest><eArrest.19>2024-05-01T12:08:00-05:00</eArrest.19></eArrest></PatientCareReport>"""
NULLS = """<PatientCareReport UUID="2"><eResponse><eResponse.03>INC-2</eResponse.03>
<eResponse.14 xsi:nil="true" NV="7701003"/></eResponse>
<eTimes><eTimes.03>2024-05-01T13:00:00-05:00</eTimes.03>
<eTimes.05 NV="7701001">2024-05-01T13:00:00-05:00</eTimes.05>
<eTimes.06 xsi:nil="1"/><eTimes.14>2024-05-01T13:04:00-05:00</eTimes.14></eTimes>
<eScene><eScene.11 PN="8801019"/></eScene></PatientCareReport>"""
TAIL = "</Header></EMSDataSet>"


def _read(folder: Path, text: str) -> RawRecords:
    path = folder / "reports.xml"
    path.write_text(text)
    return read_nemsis(path, NEMSIS)


def test_reports_and_their_null_values(tmp_path: Path) -> None:
    records = _read(tmp_path, HEAD + REPORT + NULLS + TAIL)
    first, second = (
        {name: column[i] for name, column in records.cells.items() if column[i]} for i in (0, 1)
    )
    assert first == {
        "call_id": "INC-1", "unit": "7", "depot": "A1", "depot_lat": "43.000100",
        "depot_lon": "7.000200", "lat": "43.010000", "lon": "7.010000",
        "call_at": "2024-05-01T11:58:00-05:00", "notified_at": "2024-05-01T11:59:00-05:00",
        "en_route_at": "2024-05-01T12:00:30-05:00", "on_scene_at": "2024-05-01T12:06:00-05:00",
        "cpr_at": "2024-05-01T12:08:00-05:00",
    }  # fmt: skip
    assert second == {
        "call_id": "INC-2", "notified_at": "2024-05-01T13:00:00-05:00",
        "cancelled_at": "2024-05-01T13:04:00-05:00",
    }  # fmt: skip
    assert records.row == [1, 2]
    assert "Secret" not in str(records)


def test_any_namespace_or_none(tmp_path: Path) -> None:
    text = f'<a xmlns:n="urn:x">{REPORT}</a>'
    assert _read(tmp_path, text).cells["depot"] == ["A1"]
    prefixed = text.replace("<e", "<n:e").replace("</e", "</n:e").replace("Patient", "Patient")
    prefixed = prefixed.replace("<PatientCare", "<n:PatientCare").replace("</Pat", "</n:Pat")
    assert _read(tmp_path, prefixed).cells["depot"] == ["A1"]


def test_documents_that_attack(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><x>&b;</x>'
    outside = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><x>&a;</x>'
    for text in (bomb, outside, "<!DOCTYPE x><x/>"):
        with pytest.raises(FileFormatError, match="holds a document type declaration"):
            _read(tmp_path, text)
    long = REPORT.replace("INC-1", "9" * 100_000)
    assert len(_read(tmp_path, HEAD + long + TAIL).cells["call_id"][0]) == 200


def test_files_that_are_none(tmp_path: Path) -> None:
    for text in (HEAD + REPORT, "", "call_id,lon\n1,2\n"):
        with pytest.raises(FileFormatError, match="not a whole XML file") as caught:
            _read(tmp_path, text)
        assert "\n" not in str(caught.value)
    with pytest.raises(FileFormatError, match="holds no PatientCareReport; is it NEMSIS"):
        _read(tmp_path, "<html/>")
