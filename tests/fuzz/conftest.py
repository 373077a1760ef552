"""What fuzzing shares."""

from tests.service_town import served as served
from tests.service_town import town as town
