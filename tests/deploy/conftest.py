"""What tests of a deployment share."""

from tests.service_town import town as town
