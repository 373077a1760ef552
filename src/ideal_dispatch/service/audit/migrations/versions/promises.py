"""Units promised to calls, an index of what the rows say."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Advice on record before that promised nothing: it has expired by now, or will in minutes."""
    op.create_table(
        "promises",
        sa.Column("call_id", sa.Text, primary_key=True),
        sa.Column("place", sa.Integer, primary_key=True),
        sa.Column("depot", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("advice", sa.Text, nullable=False),
        sa.Column("asked_at", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Text, nullable=False),
        sa.Column("ends_at", sa.Text, nullable=False),
    )
    op.create_index("promises_depot", "promises", ["depot"])
