"""What tests of a deployment share."""

import httpx
import pytest

from benchmarks.stack import PATIENCE_S, Proxy, missing_programs
from tests.service_town import town as town


@pytest.fixture(scope="session")
def nginx_is_there() -> None:
    """Skips where nginx cannot run."""
    if missing := missing_programs():
        pytest.skip(missing)


def client_of(proxy: Proxy) -> httpx.Client:
    """A client that trusts the proxy's certificate."""
    return httpx.Client(base_url=proxy.url, verify=proxy.trusting, timeout=PATIENCE_S)
