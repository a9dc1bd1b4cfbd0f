from pathlib import Path

import pytest


@pytest.fixture
def request_root() -> Path:
    """The top of the checkout."""
    return Path(__file__).parents[3]
