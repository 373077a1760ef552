"""What tests of the service share."""

from collections.abc import Iterator

import pytest

from ideal_dispatch.service.settings import ServiceSettings
from tests.service_town import Local, application, local
from tests.service_town import served as served
from tests.service_town import town as town


@pytest.fixture
def client(settings: ServiceSettings) -> Iterator[Local]:
    """The service with the ``settings`` of a test's module."""
    with local(application(settings)) as opened:
        yield opened
