"""What every store must do, as tests to inherit: the promises of `ports.ensure`; the rest is in `pipeline`.

A plugin author derives a class, overrides the `harness` fixture and lets pytest collect it; the tests are coroutines,
so pytest-asyncio runs in `auto` mode. Every test takes a tenant that holds nothing yet; the store behind it may be
shared. What a store does besides (statements, locks, errors of its own engine) is tested beside its adapter.
"""

from abc import ABC, abstractmethod

import pytest

from clarion.testing.contracts.automation import AutomationContract
from clarion.testing.contracts.ensuring import EnsuringContract
from clarion.testing.contracts.guarded_jobs import GuardedJobContract, NotificationSchedulerContract
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.hash_tags import HashTagContract
from clarion.testing.contracts.holding import HoldingContract, InboxHoldingContract
from clarion.testing.contracts.outgoing import OutgoingContract
from clarion.testing.contracts.outgoing_parents import ManyParentsContract
from clarion.testing.contracts.partial_failure import PartialFailureContract
from clarion.testing.contracts.profiles import ProfileContract
from clarion.testing.contracts.sets import SetContract
from clarion.testing.contracts.snapshots import SnapshotContract
from clarion.testing.contracts.support_cases import SupportCaseContract


class StoreContract(
    EnsuringContract,
    SetContract,
    AutomationContract,
    GuardedJobContract,
    NotificationSchedulerContract,
    OutgoingContract,
    ManyParentsContract,
    HoldingContract,
    InboxHoldingContract,
    ProfileContract,
    PartialFailureContract,
    HashTagContract,
    SupportCaseContract,
    SnapshotContract,
    ABC,
):
    """The promises of `ports.ensure.EnsureStore`."""

    @pytest.fixture
    @abstractmethod
    def harness(self) -> StoreHarness:
        """Open the store under test and the way around it."""
