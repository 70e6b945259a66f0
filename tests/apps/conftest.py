"""What holds for the tests of all commands."""

from collections.abc import Iterator

import pytest

from gbxcule_puffer.apps.bench import measure


@pytest.fixture(scope="session", autouse=True)
def no_rest() -> Iterator[None]:
    """Benchmarks do not wait between two turns: nothing is asserted about their figures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "SETTLE_SECONDS", 0.0)
        yield
