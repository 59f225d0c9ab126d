"""What every store must do for the pipeline, as tests to inherit: the promises of all ports of storage but `ensure`.

It is bound as `store.StoreContract` is, with one difference: workers claim across tenants, so every test needs a store
in which nothing is left to do by others.
"""

from abc import ABC, abstractmethod

import pytest

from clarion.testing.contracts.auditing import ActContract
from clarion.testing.contracts.canceling import CancelContract, GateContract
from clarion.testing.contracts.catalog import AuditPageContract, FactContract, KeyContract, TemplateContract
from clarion.testing.contracts.chained import AuditContract
from clarion.testing.contracts.claiming import ClaimContract
from clarion.testing.contracts.due import DueContract, OccurrenceActContract
from clarion.testing.contracts.events import EventContract
from clarion.testing.contracts.failing import FailingContract
from clarion.testing.contracts.gauges import GaugeContract
from clarion.testing.contracts.groups import BelongingContract, GroupContract, NestingContract
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.inbox import InboxContract
from clarion.testing.contracts.late_replies import LateReplyContract
from clarion.testing.contracts.latest import LatestContract
from clarion.testing.contracts.one_time_code import OneTimeCodeContract
from clarion.testing.contracts.opting_out import OptOutContract
from clarion.testing.contracts.ordering import OrderContract
from clarion.testing.contracts.people import PeopleContract
from clarion.testing.contracts.personal_history import PersonalHistoryContract
from clarion.testing.contracts.planning import PlanContract
from clarion.testing.contracts.profiles import LocalFormContract
from clarion.testing.contracts.receipts import ReceiptContract
from clarion.testing.contracts.recording import RecordContract
from clarion.testing.contracts.refusing import RefusalContract
from clarion.testing.contracts.reminders import MappingContract, ReminderContract, RepairContract
from clarion.testing.contracts.retiring import RetiringContract
from clarion.testing.contracts.rude_replies import RudeReplyContract
from clarion.testing.contracts.settings import SettingContract
from clarion.testing.contracts.sources import SourceContract, SourceScanContract
from clarion.testing.contracts.stages import StageContract, StageRescueContract
from clarion.testing.contracts.steps import StepContract
from clarion.testing.contracts.subscriptions import DeliveryCountContract, SubscriptionContract
from clarion.testing.contracts.suppressing import SuppressionContract
from clarion.testing.contracts.tenancy import TenancyContract
from clarion.testing.contracts.timelines import HistoryContract, TimelineContract
from clarion.testing.contracts.told_contents import ToldContentContract
from clarion.testing.contracts.uncertain import RetryContract, UncertainContract
from clarion.testing.contracts.usage import UsageContract
from clarion.testing.contracts.workers import WorkerContract


class PipelineContract(
    StageContract,
    StageRescueContract,
    StepContract,
    PlanContract,
    DueContract,
    OccurrenceActContract,
    FailingContract,
    ClaimContract,
    OrderContract,
    OptOutContract,
    RecordContract,
    RetiringContract,
    LateReplyContract,
    RudeReplyContract,
    UncertainContract,
    RetryContract,
    GateContract,
    CancelContract,
    OneTimeCodeContract,
    ReceiptContract,
    RefusalContract,
    TemplateContract,
    AuditPageContract,
    FactContract,
    LocalFormContract,
    PeopleContract,
    SuppressionContract,
    GroupContract,
    NestingContract,
    BelongingContract,
    KeyContract,
    SettingContract,
    SubscriptionContract,
    DeliveryCountContract,
    ToldContentContract,
    AuditContract,
    ActContract,
    TimelineContract,
    HistoryContract,
    PersonalHistoryContract,
    LatestContract,
    InboxContract,
    GaugeContract,
    SourceContract,
    SourceScanContract,
    EventContract,
    MappingContract,
    ReminderContract,
    RepairContract,
    WorkerContract,
    UsageContract,
    TenancyContract,
    ABC,
):
    """The promises of `ports.store.Store` beyond ensuring."""

    @pytest.fixture
    @abstractmethod
    def harness(self) -> StoreHarness:
        """Open the store under test, with an empty queue, and the way around it."""
