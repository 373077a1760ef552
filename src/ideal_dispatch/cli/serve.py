"""``ideal serve``: the HTTP service and the dispatcher's desk."""

import gc
import os
import time
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ideal_dispatch.cli.terminal import err, print_facts, say, warn
from ideal_dispatch.errors import InputError, MissingExtraError
from ideal_dispatch.ranges import Range

if TYPE_CHECKING:
    from ideal_dispatch.service.settings import ServiceSettings

_PATIENCE_S = 2.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    host: str = "127.0.0.1",
    port: Annotated[int, Range(1, 65535)] = 8000,
    config: Path | None = None,
    check: bool = False,
    workers: Annotated[int, Range(1, 64)] = 1,
    new_token: bool = False,
    simulate: bool = False,
    speed: Annotated[float | None, Range(0, 1000, above=True)] = None,
) -> None:
    """Give advice on second ambulances to your dispatch system, and show it on a desk.

    The desk is a page in the browser. Without --config it shows the embedded
    city, with simulated calls, and prints a token to sign in with.

    Options:
      --host ADDRESS  Who can reach it. 127.0.0.1: only this computer. 0.0.0.0: every network; put
          a proxy such as nginx in front, which bounds slow and many clients.
      --port NUMBER  The number after the colon in its address.
      --config FILE  Your settings (.toml): city, model, traffic, users. Default: the embedded city.
      --check  Check the settings and exit.
      --workers NUMBER  Copies of the service that share the calls, for a busy centre: at most one
          per processor core. More than one needs --config.
      --new-token  Print a new token (a password for a person or program) and its hash for the
          settings, and exit.
      --simulate  Let the embedded city live: its units turn out, drive, arrive and return. It is
          a client of the service, as `ideal simulate` is.
      --speed NUMBER  How many seconds of the embedded city pass in a real one. With --simulate it
          is 60 unless you say otherwise: an hour in a minute. Alone it gives a city that waits for
          `ideal simulate`.

    Examples:
      ideal serve
      ideal serve --simulate
      ideal serve --config centre.toml --check
      ideal serve --config centre.toml --host 0.0.0.0 --port 8080 --workers 2
    """
    gc.disable()  # until the service is ready: loading it makes no garbage, and takes a tenth less
    if not all(map(find_spec, ("fastapi", "sqlalchemy", "uvicorn", "pydantic"))):
        raise MissingExtraError("ideal serve", "service")
    from ideal_dispatch.service.settings import CONFIG, ServiceSettings

    token = ""
    if new_token:
        from ideal_dispatch.service import settings as tables

        token, hashed = tables.new_token()
        say(f"token:  {token}")
        say(f"sha256: {hashed}")
        return
    if config is None:
        if workers > 1:
            raise InputError("--workers: the embedded city has one worker; give --config")
        from ideal_dispatch.service.demo import demo, living

        if simulate and speed is None:
            speed = 60.0
        settings, token = demo() if speed is None else living(speed)
    else:
        if simulate:
            raise InputError(
                "--simulate: that is the embedded city; for one of --config run `ideal simulate`"
            )
        if speed is not None:
            raise InputError("--speed: that is of the embedded city; with --config use [clock]")
        settings = ServiceSettings.load(config)
        os.environ[CONFIG] = str(config.resolve())  # for worker processes
    if check:
        _check(settings)
        return
    from ideal_dispatch.service import logs
    from ideal_dispatch.service.errors import NoRecordError, RecordUnavailableError

    logs.configure(settings.server.log_level)
    with suppress(NoRecordError, RecordUnavailableError):  # it is made, or waited for
        _ask_database(settings)
    if host not in _LOOPBACK:
        warn(f"{host} can be reached from other computers; put a proxy such as nginx in front")
    app = None
    if workers == 1:
        from ideal_dispatch.service.deciding.engine import Engine
        from ideal_dispatch.service.http.app import create_app

        app = create_app(settings, Engine.load(settings), attended=True)
    from ideal_dispatch.service.http.server import run

    with ExitStack() as beside:
        if config is None:
            where = f"[{host}]" if ":" in host else host
            calls = "simulated calls" if speed is None else f"{speed:g} times as fast as real,"
            err.print(f"{settings.city.name}, a fictional city: {calls} on recorded traffic")
            err.print(f"desk:   http://{where}:{port}/", markup=False, soft_wrap=True)
            err.print(f"token:  {token}", markup=False, soft_wrap=True)
            err.print(f"record: {settings.database_url}", markup=False, soft_wrap=True)
            if simulate:
                from ideal_dispatch.cli.simulate import accompanied

                here = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(where, where)
                beside.enter_context(accompanied(f"http://{here}:{port}", token))
        run(app, settings, host, port, workers)


def _check(settings: "ServiceSettings") -> None:
    """Load all that is named, ask the database, and say what was found; nothing is left behind."""
    from ideal_dispatch.service.deciding.assets import load_assets
    from ideal_dispatch.service.deciding.weather import weather_provider
    from ideal_dispatch.service.errors import NoRecordError, RecordUnavailableError

    assets = load_assets(settings)
    weather_provider(settings)
    database = "to be made"
    try:
        database = _ask_database(settings)
    except NoRecordError as error:
        warn(f"{error}; the service makes it")
    except RecordUnavailableError as error:
        raise InputError(f"{error}; the service would start, and give no advice") from None
    rule, words = getattr(assets.policy, "threshold", None), "no threshold"
    if rule is not None:
        words = f"for a drive of 8 min, {rule.words(480.0, len(assets.depots))}"
    facts = {
        "city": f"{assets.name}, {assets.network!r}",
        "depots": ", ".join(assets.depots),
        "model": assets.model.checksum,
        "policy": f"{assets.policy.name}: {words}",
    }
    if (fleet := settings.fleet) is not None:
        calibrated = f"calibrated by {fleet.price}" if fleet.price else "not calibrated"
        on_duty = f"{sum(fleet.units.values())} units on duty, {fleet.calls_per_day:g} calls a day"
        facts["fleet"] = f"{on_duty}, recall {fleet.recall}, {calibrated}"
    facts |= {
        "traffic": settings.traffic.kind,
        "weather": settings.weather.source,
        "database": database,
        "deadline": f"{settings.server.deadline_s:g} s",
        "tokens": ", ".join(f"{token.name} ({token.role})" for token in settings.tokens),
    }
    print_facts("The configuration can be used", facts, justify="left")
    if assets.model.network_checksum != assets.network.checksum:
        warn("the model was trained on another network; every advice will say so")


def _ask_database(settings: "ServiceSettings") -> str:
    """The database's name, once it answered; one that cannot be used is refused in one line."""
    from ideal_dispatch.service.record.database import Database, Job

    database = Database(settings.database_url, create=False)
    try:
        database.read(lambda state: None, Job(time.monotonic() + _PATIENCE_S))
    finally:
        database.close()
    return database.name
