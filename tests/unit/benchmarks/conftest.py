"""What tests of the benchmarks share."""

from tests.service_town import town as town
