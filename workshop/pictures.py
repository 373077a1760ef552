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
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ideal_dispatch.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from playwright.sync_api import Browser

IMAGES = Path("docs/images")
HONG_KONG = Path("../shared/data/hong_kong")
FLEETS = ("port_almery", "auckland", "manhattan")
CHROMIUM = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
PATIENCE_S = 180.0
LARGE_S, EVERY = 15.0, 11
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

    def advice(self, call_id: str, lon: float, lat: float, units: int, **more: object) -> Any:
        depots = self.ask("GET", "/v1/city")["depots"]
        body = {
            "call_id": call_id,
            "received_at": datetime.now(UTC).isoformat(),
            "location": {"lon": lon, "lat": lat},
            "depots": [{"name": depot["name"], "units": units} for depot in depots],
        }
        return self.ask("POST", "/v1/recommendations", body | more)


@contextmanager
def serving(folder: Path) -> Iterator[Service]:
    """`ideal serve` in a process of its own, with its state in ``folder``; no calls of its own."""
    import httpx

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log, url = folder / "serve.log", f"http://127.0.0.1:{port}"
    command = [sys.executable, "-c", "from ideal_dispatch.cli.start import main; main()", "serve"]
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [*command, "--port", str(port)], stdout=file, stderr=file,
            env=os.environ | {"XDG_STATE_HOME": str(folder), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    try:
        until = time.monotonic() + PATIENCE_S
        while True:
            if time.monotonic() > until or process.poll() is not None:
                sys.exit(f"the service does not start:\n{log.read_text()}")
            try:
                if httpx.get(f"{url}/healthz", trust_env=False).json()["status"] == "ready":
                    break
            except httpx.TransportError:
                time.sleep(0.2)
        found = re.search(r"token: (\S+)", log.read_text())
        assert found is not None, log.read_text()
        service = Service(url, found[1])
        time.sleep(15)  # a few simulated calls, for the list
        service.ask("POST", "/v1/simulated-calls", {"every_s": 1.0, "count": 0})
        yield service
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def telling_call(service: Service) -> tuple[int, str]:
    """The node of a call with a large gain now, and the depot that is sent first.

    The traffic of the recorded day goes on meanwhile, so that later a call may be found that was
    not there before.
    """
    from ideal_dispatch.cities import harbour_city

    network = harbour_city().network
    until = time.monotonic() + PATIENCE_S
    best = (0.0, -1, "")
    for turn in range(EVERY):
        for node in range(turn, network.num_nodes, EVERY):
            place = float(network.lon[node]), float(network.lat[node])
            made = service.advice(f"probe-{node}", *place, units=500)
            if made["decision"] != "send_second" or made["degraded"]:
                continue
            primary, second = made["primary"], made["second"]
            other_way = made["explanation"]["other_way"]
            if primary["depot"] != second["depot"] and second["overlap"] < 0.1 and not other_way:
                best = max(best, (made["gain_s"], node, primary["depot"]))
        if best[0] > LARGE_S or (best[0] > 0.0 and time.monotonic() > until):
            return best[1:]
    sys.exit("no call in which a second ambulance goes at this moment; try again in a while")


def desk(browser: "Browser") -> None:
    """The desk with an advice to send a second ambulance, by day and in the dark."""
    from playwright.sync_api import expect

    from ideal_dispatch.cities import harbour_city

    network = harbour_city().network
    expect.set_options(timeout=60_000)
    with TemporaryDirectory() as folder, serving(Path(folder)) as asked:
        node, depot = telling_call(asked)
    # another service: its list has no calls of the search
    with TemporaryDirectory() as folder, serving(Path(folder)) as shown:
        place = float(network.lon[node]), float(network.lat[node])
        arriving = (network.head == node).nonzero()[0].tolist()
        street = next(network.name[edge] for edge in arriving if network.name[edge])
        made = shown.advice(
            "2026-004461", *place, units=2, primary={"depot": depot, "unit": "A131"},
            note=f"14 {street}",
        )  # fmt: skip
        print(f"the desk's call: node {node}, {made['decision']}, {made['gain_s']:.0f} s")
        for scheme, name in (("light", "desk"), ("dark", "desk_dark")):
            page = browser.new_context(
                viewport={"width": 1600, "height": 1000}, locale="en-GB",
                color_scheme="dark" if scheme == "dark" else "light",
            ).new_page()  # fmt: skip
            page.set_default_timeout(60_000)
            page.goto(shown.url)
            page.locator("#token").fill(shown.token)
            page.keyboard.press("Enter")
            link = page.locator("#link")
            expect(link).to_have_attribute("data-link", re.compile("live|impaired"))
            page.locator("#follow").set_checked(False)
            page.locator(f".call-row[data-id='{made['id']}']").click()
            expect(page.locator("#call")).to_contain_text("2026-004461")
            page.wait_for_timeout(3000)  # until the map has settled
            _save_small(page.screenshot(), IMAGES / f"{name}.png", colours=256)


# --- the report ---------------------------------------------------------------------


def report(browser: "Browser") -> None:
    """The first call on the map in the report of `ideal demo`."""
    with TemporaryDirectory() as folder:
        command = "from ideal_dispatch.cli.start import main; main()"
        arguments = ["demo", "-o", f"{folder}/demo"]
        subprocess.run([sys.executable, "-c", command, *arguments], check=True)
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
    "report": lambda: browsed(report),
    "evidence": lambda: run("workshop.evidence.front"),
    "traffic": lambda: run(
        "workshop.traffic", "src/ideal_dispatch/cities/data/harbour.traffic", "--hong-kong",
        str(HONG_KONG), "--figures", str(IMAGES), "-o", "out/plausibility.html", "--force",
    ),
    "gap": gap,
    "races": lambda: run(
        "workshop.evidence.races", "--london", "out/races/london.responses", "--network",
        "out/races/london.network", "--lancaster", "out/races/lancaster.responses",
    ),
    "fleet": lambda: run(
        "workshop.evidence.fleet", *(f"out/fleet/{city}" for city in FLEETS),
        "--turnout", "out/fleet/turnout",
    ),
}  # fmt: skip
"""What makes each picture."""


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
