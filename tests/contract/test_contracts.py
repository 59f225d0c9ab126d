"""The contract suites are whole: every record has its place in them, and no test hides another."""

import importlib
import inspect
import pkgutil
from collections import Counter

import pytest

from clarion import domain
from clarion.domain.guard import IdempotencyGuard
from clarion.domain.outgoing import OutgoingMessage
from clarion.testing.contracts.kind import KINDS
from clarion.testing.contracts.pipeline import PipelineContract
from clarion.testing.contracts.store import StoreContract


def test_every_record_type_that_is_compared_has_its_place_in_the_contract() -> None:
    """A type that is added and not listed would be held to nothing; two have contracts of their own."""
    modules = [
        importlib.import_module(f"{domain.__name__}.{found.name}") for found in pkgutil.iter_modules(domain.__path__)
    ]
    compared = {
        kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass) if "GIVEN" in vars(kind)
    }
    assert compared == {OutgoingMessage, IdempotencyGuard, *(kind.record for kind in KINDS)}


@pytest.mark.parametrize("contract", [StoreContract, PipelineContract])
def test_no_part_of_a_contract_hides_a_test_of_another(contract: type) -> None:
    names = Counter(name for part in contract.__mro__ for name in vars(part) if name.startswith("test_"))
    assert [name for name, times in names.items() if times > 1] == []
    assert len(names) > 80
