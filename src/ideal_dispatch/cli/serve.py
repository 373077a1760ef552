"""``ideal serve``: the HTTP service and the dispatcher's desk."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ideal_dispatch.cli.terminal import err, print_facts, say, warn
from ideal_dispatch.errors import InputError, MissingExtraError
from ideal_dispatch.ranges import Range

if TYPE_CHECKING:
    from fastapi import FastAPI

    from ideal_dispatch.service.settings import ServiceSettings
    from ideal_dispatch.service.solver.pool import SolverPool


def serve(
    ctx: typer.Context,
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
      --host ADDRESS  Who can reach it. 127.0.0.1: only this computer. 0.0.0.0: every network.
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
    from ideal_dispatch.service.http import worker

    if not worker.available():
        raise MissingExtraError("ideal serve", "service")
    if new_token:
        from ideal_dispatch.service import tokens

        token, hashed = tokens.new_token()
        say(f"token:  {token}")
        say(f"sha256: {hashed}")
        return
    if config is None:
        if simulate and speed is None:
            speed = 60.0
        _demo(host, port, workers, check, ctx.obj, speed, simulate)
        return
    if simulate:
        raise InputError(
            "--simulate: that is the embedded city; for one of --config run `ideal simulate`"
        )
    if speed is not None:
        raise InputError("--speed: that is of the embedded city; with --config give it in [clock]")
    if check:
        _check(config)
        return
    app: FastAPI | str = worker.FACTORY
    with worker.starting(ctx.obj) as solver:
        from ideal_dispatch.service import logs
        from ideal_dispatch.service.settings import ServiceSettings, hand_down

        hand_down(str(config.resolve()))
        given = ServiceSettings.load(config)
        if workers > 1:
            worker.check(given, solver)
            logs.configure(given.server.log_level)
        else:
            app = worker.application(given, solver)
    from ideal_dispatch.service.http.server import run

    run(app, given, host, port, workers)


def _demo(
    host: str,
    port: int,
    workers: int,
    check: bool,
    begun: "SolverPool | None",
    speed: float | None,
    simulate: bool,
) -> None:
    """The embedded city; with a ``speed`` on a clock of its own, and alive if that is asked for."""
    from ideal_dispatch.service.http import worker

    if workers > 1:
        raise InputError("--workers: the embedded city has one worker; give --config")
    with worker.starting(begun) as solver:
        from ideal_dispatch.service.desk.demo import demo, living

        settings, token = demo() if speed is None else living(speed)
        if check:
            worker.check(settings, solver)
            err.print("the embedded city can be served")
            return
        app = worker.application(settings, solver)
    where = f"[{host}]" if ":" in host else host
    calls = "simulated calls" if speed is None else f"{speed:g} times as fast as real,"
    err.print(f"{settings.city.name}, a fictional city: {calls} on recorded traffic")
    err.print(f"desk:  http://{where}:{port}/", markup=False, soft_wrap=True)
    err.print(f"token: {token}", markup=False, soft_wrap=True)
    err.print(f"audit: {settings.database_url}", markup=False, soft_wrap=True)
    from ideal_dispatch.service.http.server import run

    if not simulate:
        run(app, settings, host, port, workers)
        return
    from ideal_dispatch.living.companion import accompanied

    here = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(where, where)
    with accompanied(f"http://{here}:{port}", token):
        run(app, settings, host, port, workers)


def _check(config: Path) -> None:
    """Load all that is named, try the audit, and say what was found; nothing is left behind."""
    from ideal_dispatch.service.polling import weather_provider
    from ideal_dispatch.service.settings import ServiceSettings
    from ideal_dispatch.service.solver.assets import load_assets

    given = ServiceSettings.load(config)
    assets = load_assets(given)
    weather_provider(given)
    rule, words = getattr(assets.policy, "threshold", None), "no threshold"
    if rule is not None:
        words = f"for a drive of 8 min, {rule.words(480.0, len(assets.depots))}"
    assets.traffic.prepare()
    facts = {
        "city": f"{assets.name}, {assets.network!r}",
        "depots": ", ".join(depot.name for depot in assets.depots),
        "model": assets.model.checksum,
        "policy": f"{assets.policy.name}: {words}",
        **_fleet(given),
        "traffic": given.traffic.kind,
        "weather": given.weather.source,
        "deadline": f"{given.server.deadline_s:g} s",
        "tokens": ", ".join(f"{token.name} ({token.role})" for token in given.tokens),
    }
    _try_audit(given)
    print_facts("The configuration can be used", facts, justify="left")
    if assets.model.network_checksum != assets.network.checksum:
        warn("the model was trained on another network; every advice will say so")


def _fleet(given: "ServiceSettings") -> dict[str, str]:
    """The fleet that prices come from, where there is one."""
    if (table := given.fleet) is None:
        return {}
    calibrated = f"calibrated by {table.price}" if table.price else "not calibrated"
    words = f"{sum(table.units.values())} units on duty, {table.calls_per_day:g} calls a day"
    return {"fleet": f"{words}, recall {table.recall}, {calibrated}"}


def _try_audit(given: "ServiceSettings") -> None:
    """Write to the spool and ask the database; a database that is yet to be made is none to ask."""
    from ideal_dispatch.service.audit.database import parse_url
    from ideal_dispatch.service.audit.record import AuditError, NoTablesError
    from ideal_dispatch.service.audit.spool import Spool
    from ideal_dispatch.service.audit.store import AuditStore

    folder = given.file(given.audit.spool)
    made = not folder.exists()
    Spool(folder, reserve_bytes=4096).close()
    if made:
        folder.rmdir()
    url = parse_url(given.database_url)
    store = AuditStore(given.database_url, create=False)
    if url.drivername == "sqlite" and not Path(url.database or "").exists():
        warn(f"{url.database} does not exist; the service makes it")
        return
    try:
        store.recent("service", 1)
    except NoTablesError:
        warn(f"{url.render_as_string()} has no tables; the service makes them when it starts")
    except AuditError as error:
        raise InputError(f"{error}; the service would start, and spool") from None
    finally:
        store.close()
