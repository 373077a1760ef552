"""A real service with the embedded city, and a real Chromium that looks at its desk."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, Playwright, Route, expect, sync_playwright

from benchmarks.ports import free_port
from benchmarks.stack import wait_until_ready
from tests.conftest import ROOT

SCREENSHOTS = ROOT / "out" / "desk_screenshots"
PLAIN = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
SOFTWARE = [*PLAIN, "--disable-gpu", "--disable-3d-apis"]
ENOUGH = 500  # units of a depot: each call is promised some
PATIENCE_MS = 60_000  # two cores, shared with whatever else runs

expect.set_options(timeout=PATIENCE_MS)

SIZES = [(1024, 768), (1366, 650), (1920, 1080)]  # 650: what bars of a browser leave
LOOKS = [("light", "en-GB"), ("dark", "zh-HK")]
INSIDE = """() => [...document.querySelectorAll(
    ".verdict h2, .expiry, .main .depot, .gain .number, #accept, #override, .ages, #city-line")]
  .filter((node) => node.getClientRects().length)
  .filter((node) => {
    const box = node.getBoundingClientRect();
    return box.left < 0 || box.top < 0 || box.right > innerWidth || box.bottom > innerHeight ||
      node.scrollWidth > node.clientWidth + 1;
  })
  .map((node) => node.className || node.id || node.tagName)"""
"""What is cut or outside the window."""
SPOT = """([r, g, b]) => {
  const canvas = document.querySelector("#map .overlay");
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  let [count, x, y, west, east] = [0, 0, 0, width, 0];
  for (let i = 0; i < data.length; i += 4)
    if (data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255) {
      const column = (i / 4) % width;
      count += 1;
      x += column;
      y += Math.floor(i / 4 / width);
      [west, east] = [Math.min(west, column), Math.max(east, column)];
    }
  return { count, x: x / count, y: y / count, width: east - west };
}"""
"""How many pixels of a colour lie over the roads, their middle, and how wide they reach."""
FREE, TAPE = [0x00, 0x9E, 0x73], [0xD5, 0x5E, 0x00]
PRIMARY, SECOND = [0x56, 0xB4, 0xE9], [0xE6, 0x9F, 0x00]
SPY = """() => {
  const drawing = CanvasRenderingContext2D.prototype;
  const { clearRect, fillRect } = drawing;
  const names = (globalThis.names = []);
  const of = ({ canvas }, change) => canvas.className === "overlay" && change();
  drawing.clearRect = function (...box) {
    of(this, () => (names.length = 0));
    clearRect.apply(this, box);
  };
  drawing.fillRect = function (...box) {
    of(this, () => names.push(box));
    fillRect.apply(this, box);
  };
}"""
"""Keep the boxes of names that the overlay of the map draws: it fills no other."""
NAMES = """() => {
  const covers = ([x, y, width, height], [left, top, w, h]) =>
    x < left + w && left < x + width && y < top + h && top < y + height;
  const pairs = names.flatMap((one, i) => names.slice(i + 1).filter((two) => covers(one, two)));
  return [names.length, pairs.length];
}"""
"""How many names the map shows, and how many of them cover one another."""

Turn = Callable[..., Page]
_numbers = count(1)


@dataclass(frozen=True)
class Host:
    """Where a desk is, and the token to sign in with."""

    url: str
    token: str


@dataclass
class Service:
    """`ideal serve` in a process of its own, and what a CAD would ask it."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] = field(init=False)
    token: str = field(init=False)
    calls: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        log = self.folder / "serve.log"
        program = Path(sys.executable).with_name("ideal")
        with open(log, "wb") as file:
            self.process = subprocess.Popen(
                [program, "serve", "--port", str(self.port)],
                stdout=file,
                stderr=file,
                env=os.environ | {"XDG_STATE_HOME": str(self.folder), "OMP_NUM_THREADS": "1"},
            )
        wait_until_ready(self.url, self.process, log)
        found = re.search(r"token: +(\S+)", log.read_text())
        assert found is not None, log.read_text()
        self.token = found[1]
        self.ask("POST", "/v1/simulated-calls", {"every_s": 1.0, "count": 0})
        depots = [depot["name"] for depot in self.ask("GET", "/v1/city")["depots"]]
        self.ask("PUT", "/v1/units", [{"depot": depot, "free": ENOUGH} for depot in depots])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()

    def send(self, method: str, path: str, body: object = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.request(
            method, self.url + path, json=body, headers=headers, timeout=60, trust_env=False
        )
        assert answer.is_success, answer.text
        return answer

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return self.send(method, path, body).json()

    def call(self, decision: str, **more: object) -> dict[str, Any]:
        """A call that is decided as wished, by its threshold or by its place.

        On a busy machine the service may miss its deadline, and then says so.
        """
        for _ in range(10):
            made = self._call(decision, **more)
            if not {"late", "starting", "record_unavailable"} & {
                reason["code"] for reason in made["degraded"]
            }:
                break
        assert made["decision"] == decision, made["degraded"]
        return made

    def tell(self, *news: dict[str, Any]) -> None:
        """Report units; all of it must be news."""
        answer = self.ask("PUT", "/v1/units", list(news))
        assert answer == {"taken": len(news), "ignored": []}

    def remove(self, *units: str) -> None:
        """These units are no more; all where none is named."""
        for unit in units or [one["id"] for one in self.ask("GET", "/v1/units")]:
            self.send("DELETE", f"/v1/units/{quote(unit, safe='')}")

    def _call(self, decision: str, **more: object) -> dict[str, Any]:
        self.calls += 1
        city = self.ask("GET", "/v1/city")
        lon, lat = city["centre"]
        body = {
            "call_id": f"T-{self.port}-{self.calls:03d}",
            "received_at": datetime.now(UTC).isoformat(),
            "location": {"lon": lon, "lat": lat + (30 if decision == "no_advice" else 0)},
            "threshold_s": -5.0 if decision == "send_second" else 500.0,
            "note": "12 Lantern Street, 3rd floor",
        } | more
        made: dict[str, Any] = self.ask("POST", "/v1/recommendations", body)
        return made

    def advice(self, made: dict[str, Any]) -> dict[str, Any]:
        """What the service has recorded of an advice."""
        recorded: dict[str, Any] = self.ask("GET", f"/v1/recommendations/{made['id']}")
        return recorded


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where Chromium is, or a plain reason to skip."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    return program


@pytest.fixture(scope="module")  # its event loop must not outlive the file
def playwright(chromium: str) -> Iterator[Playwright]:
    with sync_playwright() as found:
        yield found


@pytest.fixture(scope="module")
def browser(playwright: Playwright, chromium: str) -> Iterator[Browser]:
    """Chromium that draws by software."""
    browser = playwright.chromium.launch(executable_path=chromium, args=SOFTWARE)
    yield browser
    browser.close()


@contextmanager
def _started(folder: Path) -> Iterator[Service]:
    service = Service(folder)
    service.start()
    try:
        yield service
    finally:
        service.kill()


@pytest.fixture(scope="session")
def service(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that all tests share; none of them may stop it."""
    with _started(tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture(scope="module")
def city(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for the tests of a module: single units are reported to it, or roads closed."""
    with _started(tmp_path_factory.mktemp("city")) as service:
        yield service


@pytest.fixture
def trio(city: Service) -> tuple[str, str, str]:
    """Two units at the first depot, one at the second, and no others; no test had them before."""
    number = next(_numbers)
    near, far = (depot["name"] for depot in city.ask("GET", "/v1/city")["depots"])
    ids = f"A{number:02d}", f"B{number:02d}", f"C{number:02d}"
    city.remove()
    depots = zip(ids, (near, near, far), strict=True)
    city.tell(*({"id": one, "depot": depot, "status": "at_station"} for one, depot in depots))
    return ids


@pytest.fixture
def own_service(chromium: str, tmp_path: Path) -> Iterator[Service]:
    """A service to be stopped and killed."""
    with _started(tmp_path) as service:
        yield service


def sign_in(page: Page, service: Service | Host) -> None:
    """From the first page to the desk, with the keyboard."""
    page.goto(service.url)
    expect(page.locator("#token")).to_be_focused()
    page.keyboard.type(service.token)
    page.keyboard.press("Enter")
    expect(page.locator("#link")).to_have_attribute("data-link", re.compile("live|impaired"))


@contextmanager
def _desks() -> Iterator[Turn]:
    """Opens desks; fails in the end where a page had an error or broke its security policy."""
    contexts, problems = [], []

    def turn(
        browser: Browser,
        service: Service | Host,
        size: tuple[int, int] = (1280, 800),
        meddle: tuple[str, Callable[[Route], None]] | None = None,
        **more: Any,
    ) -> Page:
        viewport: Any = {"width": size[0], "height": size[1]}
        context = browser.new_context(viewport=viewport, **({"locale": "en-GB"} | more))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console", lambda said: problems.append(said.text) if said.type == "error" else None
        )
        if meddle is not None:
            page.route(*meddle)
        sign_in(page, service)
        page.locator("#follow").set_checked(False)
        return page

    yield turn
    for context in contexts:
        context.close()
    # a browser reports answers of 401 and lost connections there, too
    assert [text for text in problems if "Failed to load resource" not in text] == []


@pytest.fixture
def open_desk() -> Iterator[Turn]:
    """To open a desk of a test's own."""
    with _desks() as turn:
        yield turn


@pytest.fixture(scope="module")
def desk(browser: Browser, service: Service) -> Iterator[Page]:
    """A desk that the tests of a module share."""
    with _desks() as turn:
        yield turn(browser, service)


def spot(page: Page, colour: list[int], least: int = 40) -> dict[str, float]:
    """Where the pixels of a colour are on the map, once there are so many of them."""
    page.wait_for_function(f"([colour, n]) => ({SPOT})(colour).count > n", arg=[colour, least])
    found: dict[str, float] = page.evaluate(SPOT, colour)
    return found


def names_drawn(page: Page) -> tuple[int, int]:
    """How many names the map shows once it is drawn again, and how many cover one another."""
    page.evaluate(SPY)
    page.get_by_role("button", name=re.compile("Whole city|全市")).click()
    page.keyboard.press("t")  # it is drawn again where it showed the whole city before, too
    page.wait_for_function("() => names.length > 0")
    shown, covered = page.evaluate(NAMES)
    return shown, covered


def serious(page: Page) -> list[str]:
    """What keeps people from using the page, by axe."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {json.dumps([node['html'] for node in one['nodes']])[:400]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def show(page: Page, made: dict[str, Any]) -> None:
    """Choose a call and wait until the desk shows it."""
    page.locator(f".call-row[data-id='{made['id']}']").click()
    expect(page.locator("#call")).to_contain_text(made["call_id"])


def show_open(page: Page, made: dict[str, Any]) -> None:
    """Choose a call and wait until it can be answered."""
    show(page, made)
    expect(page.locator("#override")).to_be_enabled()


def shoot(page: Page, name: str) -> None:
    """Keep a picture for people to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
