"""What tests of the service share."""

from tests.service_town import served as served
from tests.service_town import town as town
