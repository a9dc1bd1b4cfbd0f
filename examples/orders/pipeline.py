"""A shop: orders, payments, refunds, shipments and customers, from two teams, in whatever order they arrive."""

import fulfilment  # noqa: F401
import sales  # noqa: F401
from shop import shop  # noqa: F401
