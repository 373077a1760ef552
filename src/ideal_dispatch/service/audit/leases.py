"""What one worker alone does, whichever: it holds a lease in the database and renews it."""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from ideal_dispatch.service.audit.schema import leases

_NOW = sa.select(sa.func.clock_timestamp())


def take(connection: Connection, task: str, holder: str, for_s: float) -> bool:
    """Whether ``holder`` has the task from now on, for so many seconds.

    It has if nobody did, if its own lease is renewed, or if another's ended; ``for_s`` 0 gives it
    back. The clock is the database's own, so that clocks of machines do not matter, and real time
    whatever the service's clock says. SQLite's is that of the machine it is on.
    """
    now = _now(connection)
    insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(leases)
    until = now + timedelta(seconds=for_s)
    taken = insert.values(task=task, holder=holder, until=until).on_conflict_do_update(
        index_elements=[leases.c.task],
        set_={"holder": holder, "until": until},
        where=sa.or_(leases.c.holder == holder, leases.c.until <= now),
    )
    return connection.execute(taken.returning(leases.c.task)).one_or_none() is not None


def _now(connection: Connection) -> datetime:
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    moment: datetime = connection.execute(_NOW).scalar_one()
    return moment
