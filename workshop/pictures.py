"""Every picture of the README and the pages: ``python -m workshop.pictures [NAME ...]``.

The desk and the report are what a real Chromium shows of a real service and of the demo's
report. The others are figures of the evidence and of the benchmark page.
"""

import argparse
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from benchmarks.ports import free_port
from benchmarks.stack import stop, wait_until_ready
from ideal_dispatch.arrays import IntArray
from ideal_dispatch.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL import Image
    from playwright.sync_api import Browser, Page

    from ideal_dispatch import RoadNetwork

Scheme = Literal["light", "dark"]

IMAGES = Path("docs/images")
CHROMIUM = ("--no-sandbox", "--disable-gpu", "--disable-3d-apis")
"""As the tests of the desk: all is drawn by software."""
PATIENCE_S = 180.0
IDEAL = "from ideal_dispatch.cli.app import main; main()"
SPEED, LIFE = "16", ("--seed", "3", "--units", "16", "--calls-per-day", "900")
"""A city with long ways and many calls: a second ambulance is soon sent from its other end."""
ANSWER_S, AFTER_S, LEAST_S, END_S = 3.0, 4.0, 10.0, 4
"""Recorded until an answer, after the end, and at the least; how long the last frame stays."""
UNCHANGED = 255
LARGE_S, EVERY = 24.0, 11
"""The search for a call ends at such a gain; at a time it asks about one of so many junctions."""


def save_figures(drawn: "Mapping[str, Figure]", folder: str | os.PathLike[str]) -> list[Path]:
    """Write every figure as a PNG small enough for a repository; same figures, same bytes."""
    files = [Path(folder) / f"{name}.png" for name in drawn]
    for file, figure in zip(files, drawn.values(), strict=True):
        drawing = io.BytesIO()
        figure.savefig(drawing, format="png", dpi=110)
        _save_small(drawing.getvalue(), file, colours=128)
    return files


def _save_small(png: bytes, file: Path, colours: int) -> None:
    from PIL import Image

    with atomic_write(file) as stream, Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").quantize(colours).save(stream, "PNG", optimize=True)


# --- the desk -----------------------------------------------------------------------


@dataclass(frozen=True)
class Service:
    """The embedded city's service, and what a dispatch system would ask it."""

    url: str
    token: str

    def ask(self, method: str, path: str, body: object = None) -> Any:
        import httpx

        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.request(
            method, self.url + path, json=body, headers=headers, timeout=60, trust_env=False
        )
        answer.raise_for_status()
        return answer.json()

    def advice(self, call_id: str, lon: float, lat: float, **more: object) -> Any:
        body = {"call_id": call_id, "location": {"lon": lon, "lat": lat}}
        return self.ask("POST", "/v1/recommendations", body | more)

    def units(self, free: int) -> None:
        """So many free units at each depot."""
        depots = [depot["name"] for depot in self.ask("GET", "/v1/city")["depots"]]
        self.ask("PUT", "/v1/units", [{"depot": depot, "free": free} for depot in depots])


@contextmanager
def serving(folder: Path, speed: str) -> Iterator[Service]:
    """`ideal serve` from a morning rush on, with its state in ``folder``; no calls of its own."""
    port = free_port()
    log, url = folder / "serve.log", f"http://127.0.0.1:{port}"
    command = [sys.executable, "-c", IDEAL, "serve", "--port", str(port), "--speed", speed]
    with open(log, "wb") as file:
        process = subprocess.Popen(
            command,
            stdout=file, stderr=file,
            env=os.environ | {"XDG_STATE_HOME": str(folder), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    try:
        wait_until_ready(url, process, log)
        found = re.search(r"token: +(\S+)", log.read_text())
        assert found is not None, log.read_text()
        yield Service(url, found[1])
    finally:
        stop(process)


def telling_call(service: Service) -> tuple[int, str]:
    """The node of a call with a large gain now, and the depot that is sent first.

    The traffic of the recorded day goes on meanwhile, so that later a call may be found that was
    not there before.
    """
    from ideal_dispatch.cities import harbour_city

    network = harbour_city().network
    until = time.monotonic() + PATIENCE_S
    best = (0.0, -1, "")
    service.units(1000)  # each call is promised some
    for turn in range(EVERY):
        for node in range(turn, network.num_nodes, EVERY):
            place = float(network.lon[node]), float(network.lat[node])
            made = service.advice(f"probe-{node}", *place)
            doubts = [remark for remark in made["degraded"] if not remark["standing"]]
            if made["decision"] != "send_second" or doubts:
                continue
            primary, second = made["primary"], made["second"]
            other_way = made["why"]["other_way"]
            if primary["depot"] != second["depot"] and second["overlap"] < 0.1 and not other_way:
                best = max(best, (made["gain_s"], node, primary["depot"]))
        if best[0] > LARGE_S or (best[0] > 0.0 and time.monotonic() > until):
            return best[1:]
    sys.exit("no call in which a second ambulance goes at this moment; try again in a while")


def fleet(service: Service, depot: str, network: "RoadNetwork") -> list[dict[str, Any]]:
    """Two units at each depot, A131 at the one that is named, and some at work in the city."""
    names = sorted((one["name"] for one in service.ask("GET", "/v1/city")["depots"]),
                   key=lambda name: name != depot)  # fmt: skip
    units: list[dict[str, Any]] = [
        {"id": f"{letter}{number}", "depot": name, "status": "at_station"}
        for letter, name in zip("AB", names, strict=True)
        for number in (131, 132)
    ]
    busy = {"A133": "on_scene", "A134": "transporting", "B133": "at_hospital", "B134": "en_route"}
    for (unit, status), share in zip(busy.items(), (0.2, 0.45, 0.6, 0.85), strict=True):
        node = round(share * network.num_nodes)
        place = {"lon": float(network.lon[node]), "lat": float(network.lat[node])}
        home = names[unit.startswith("B")]
        units.append({"id": unit, "depot": home, "status": status, "call_id": "other", **place})
    return units


def signed_in(
    browser: "Browser", service: Service, width: int, height: int, scheme: Scheme = "light"
) -> "Page":
    """The desk of a service, in a window of its own."""
    page = browser.new_context(
        viewport={"width": width, "height": height}, locale="en-GB", color_scheme=scheme
    ).new_page()
    page.set_default_timeout(60_000)
    page.goto(service.url)
    page.locator("#token").fill(service.token)
    page.keyboard.press("Enter")
    return page


def desk(browser: "Browser") -> None:
    """The desk with an advice to send a second ambulance, by day and in the dark."""
    from playwright.sync_api import expect

    from ideal_dispatch.cities import harbour_city

    network = harbour_city().network
    expect.set_options(timeout=60_000)
    with TemporaryDirectory() as folder, serving(Path(folder), speed="1") as asked:
        node, depot = telling_call(asked)
    # another service: its list has no calls of the search
    with TemporaryDirectory() as folder, serving(Path(folder), speed="1") as shown:
        shown.ask("PUT", "/v1/units", fleet(shown, depot, network))
        shown.ask("POST", "/v1/simulated-calls", {"every_s": 1.0, "count": 5})  # for the list
        time.sleep(10)
        place = float(network.lon[node]), float(network.lat[node])
        arriving = (network.head == node).nonzero()[0].tolist()
        street = next(network.name[edge] for edge in arriving if network.name[edge])
        made = shown.advice(
            "2026-004461", *place, primary={"depot": depot, "unit": "A131"}, note=f"14 {street}"
        )
        print(f"the desk's call: node {node}, {made['decision']}, {made['gain_s']:.0f} s")
        schemes: dict[Scheme, str] = {"light": "desk", "dark": "desk_dark"}
        for scheme, name in schemes.items():
            page = signed_in(browser, shown, 1600, 1000, scheme)
            link = page.locator("#link")
            expect(link).to_have_attribute("data-link", re.compile("live|impaired"))
            page.locator("#follow").set_checked(False)
            page.locator(f".call-row[data-id='{made['id']}']").click()
            expect(page.locator("#call")).to_contain_text("2026-004461")
            page.wait_for_timeout(3000)  # until the map has settled
            _save_small(page.screenshot(), IMAGES / f"{name}.png", colours=256)


def living(browser: "Browser") -> None:
    """Some twenty seconds of the living city: a second ambulance, from the call to the end.

    The city's own dispatcher is slow, so that whoever sits at the desk answers: here, two seconds
    after each question.
    """
    with TemporaryDirectory() as folder, serving(Path(folder), SPEED) as on:
        page = signed_in(browser, on, 1280, 800)
        with living_city(on):
            shots = one_dispatch(on, page)
    took_s = shots[-1][0] - shots[0][0]
    lasting = [round(1000 * took_s / len(shots))] * len(shots)
    lasting[-1] += 1000 * END_S
    first, *others = indexed([shot for _, shot in shots])
    with atomic_write(IMAGES / "living.png") as stream:
        first.save(
            stream, "PNG", save_all=True, append_images=others, loop=0, optimize=True,
            duration=lasting, blend=1, transparency=UNCHANGED,
        )  # fmt: skip
    print(f"the living city: {took_s + END_S:.1f} s in {len(shots)} frames")


@contextmanager
def living_city(service: Service) -> Iterator[None]:
    """`ideal simulate` with a dispatcher who leaves the answers to the desk."""
    process = subprocess.Popen(
        [sys.executable, "-c", IDEAL, "simulate", "--url", service.url, "--token", service.token,
         "--think", "1000", *LIFE],
    )  # fmt: skip
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


DESK = """() => [
  document.querySelector(".call-row[aria-current]")?.dataset.id,
  document.querySelector("#advice").dataset.standing,
  document.querySelector("#running-do").checkVisibility(),
]"""
"""Which call the desk shows, whether its advice may be used, whether its dispatch asks."""


def one_dispatch(service: Service, page: "Page") -> list[tuple[float, bytes]]:
    """Moments and pictures of a dispatch by two ways, from its advice on."""
    until, shots = time.monotonic() + 20 * PATIENCE_S, list[tuple[float, bytes]]()
    call = asked_at = over_at = None
    while (now := time.monotonic()) < until:
        shown, standing, asks = page.evaluate(DESK)
        shots.append((now, page.screenshot()))
        if call is None:
            shots = shots[-1:]
            if shown is None or standing != "open":
                continue
            advice = service.ask("GET", f"/v1/recommendations/{shown}")
            if advice["decision"] != "send_second" or advice["second"]["overlap"] > 0.5:
                continue
            call = shown
            page.locator("#follow").set_checked(False)
            page.locator(f".call-row[data-id='{call}']").click()  # a newer one may have come
            page.evaluate("document.activeElement.blur()")
        asked_at = (asked_at or now) if asks or standing == "open" else None
        if asked_at and now > asked_at + ANSWER_S:
            page.keyboard.press("a")
        state = ""
        if standing in ("running", "ended"):
            state = service.ask("GET", f"/v1/dispatches/{call}")["state"]
        over_at = (over_at or now) if state in ("stood_down", "ended") else None
        if standing == "expired" or (over_at and now > over_at + AFTER_S):
            if over_at and now - shots[0][0] > LEAST_S:
                return shots
            call = None
            page.locator("#follow").set_checked(True)
    sys.exit("no dispatch by two ways that lasts long enough; try another seed")


def indexed(shots: Sequence[bytes]) -> "list[Image.Image]":
    """Frames with one palette: common colours as they are, rare ones nearly so.

    In every frame but the first, what is as before is transparent: that makes the file small.
    """
    from PIL import Image

    frames = []
    for shot in shots:
        with Image.open(io.BytesIO(shot)) as image:
            frames.append(np.asarray(image.convert("RGB"), dtype=np.int64) @ (65536, 256, 1))
    colours, counts = np.unique(np.stack(frames[::8]), return_counts=True)
    rank = np.argsort(-counts, kind="stable")
    common, rare = (_rgb(colours[part]) for part in (rank[:200], rank[200:]))
    others = Image.fromarray(rare[None].astype(np.uint8)).quantize(55).getpalette() or []
    palette = np.vstack([common, np.reshape(others, (-1, 3))])
    made, before = [], None
    for frame in frames:
        own, places = np.unique(frame, return_inverse=True)
        far = ((_rgb(own)[:, None] - palette) ** 2).sum(axis=2)
        drawn = far.argmin(axis=1)[places].reshape(frame.shape)
        changed = drawn if before is None else np.where(drawn == before, UNCHANGED, drawn)
        before = drawn
        made.append(Image.fromarray(changed.astype(np.uint8), "P"))
        made[-1].putpalette(palette.astype(np.uint8).tobytes().ljust(768, b"\0"))
    return made


def _rgb(colours: IntArray) -> IntArray:
    return np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=-1)


# --- the report ---------------------------------------------------------------------


def report(browser: "Browser") -> None:
    """The first call on the map in the report of `ideal demo`."""
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", IDEAL, "demo", "-o", f"{folder}/demo"], check=True)
        page = browser.new_context(
            viewport={"width": 1110, "height": 1000}, locale="en-GB", color_scheme="light"
        ).new_page()
        page.goto(f"file://{folder}/demo/report/report.html")
        heading = page.get_by_role("heading", name="Calls on the map")
        above = heading.bounding_box()
        below = heading.locator("xpath=following::figure[1]").bounding_box()
        assert above is not None
        assert below is not None
        top = above["y"] - 20
        height = below["y"] + below["height"] + 20 - top
        part: Any = {"x": 0, "y": top, "width": 1110, "height": height}
        _save_small(page.screenshot(full_page=True, clip=part), IMAGES / "report.png", colours=256)


def browsed(take: "Callable[[Browser], None]") -> None:
    """Take pictures with a Chromium of this machine, or with playwright's own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(CHROMIUM)
        )
        take(browser)
        browser.close()


# --- all of them --------------------------------------------------------------------


def run(*arguments: str) -> None:
    """Another command of the workshop, or of the benchmarks."""
    subprocess.run([sys.executable, "-m", *arguments], check=True)


def gap() -> None:
    """How decisions grow with the city: measured, for half an hour, and written to its page."""
    run("workshop.bench_page", "gap")
    _save_small(Path("out/bench/gap_growth.png").read_bytes(), IMAGES / "gap_growth.png", 128)


PICTURES: Mapping[str, Callable[[], None]] = {
    "desk": lambda: browsed(desk),
    "living": lambda: browsed(living),
    "report": lambda: browsed(report),
    "gap": gap,
    "races": lambda: run(
        "workshop.evidence.races", "--london", "out/races/london.responses", "--network",
        "out/races/london.network", "--lancaster", "out/races/lancaster.responses",
    ),
}  # fmt: skip
"""What makes each picture."""

OF_0_2 = ("evidence", "traffic", "fleet")
"""Pictures that version 0.2.0 made, on pages of its measurements."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", choices=[[], *PICTURES],
        help=f"of {', '.join(PICTURES)}; all by default",
    )  # fmt: skip
    for name in parser.parse_args().names or PICTURES:
        print(f"pictures: {name}", flush=True)
        PICTURES[name]()


if __name__ == "__main__":
    main()
