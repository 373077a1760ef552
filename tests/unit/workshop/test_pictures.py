"""Pictures: each one on a page is made by a command, and no other is kept."""

import io
import re
import subprocess
import sys

from PIL import Image

from tests.conftest import ROOT
from workshop.pictures import IMAGES, OF_0_2, PICTURES, UNCHANGED, indexed


def test_every_picture_is_on_a_page_and_every_page_has_its_pictures() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"images/([\w.]+png)", page.read_text())}
    assert shown == {file.name for file in (ROOT / IMAGES).iterdir()}
    made = {name.split("_")[0].removesuffix(".png") for name in shown}
    assert made == {*PICTURES, *OF_0_2}


def test_help_names_them() -> None:
    command = [sys.executable, "-m", "workshop.pictures", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ", ".join(PICTURES) in " ".join(done.stdout.split())


def test_frames_of_a_recording_keep_their_colours_and_what_did_not_change() -> None:
    shots = []
    for number in range(3):
        image = Image.new("RGB", (40, 30), "#e69f00")
        image.paste("#56b4e9", (10 * number, 5, 10 * number + 8, 20))
        shots.append(image)
    files = [io.BytesIO() for _ in shots]
    for shot, file in zip(shots, files, strict=True):
        shot.save(file, "PNG")
    first, *others = indexed([file.getvalue() for file in files])
    recording = io.BytesIO()
    first.save(
        recording, "PNG", save_all=True, append_images=others, blend=1, transparency=UNCHANGED
    )
    with Image.open(recording) as read:
        for number, shot in enumerate(shots):
            read.seek(number)
            assert read.convert("RGB").tobytes() == shot.tobytes()
