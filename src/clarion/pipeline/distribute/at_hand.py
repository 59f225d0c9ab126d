"""What calls need of their jobs, at hand in memory: templates, and the contents of messaging jobs.

A claimed message that does not find what it needs goes back, and that is fetched before the next claim (I-14).
Reads templates and blobs; writes nothing.
"""

import structlog

from clarion.domain.backoff import not_called
from clarion.domain.call import NotCalled
from clarion.domain.claim import ClaimedMessage
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.messaging_content import MessagingContent
from clarion.ports.renderer import QUARANTINED, Bundle
from clarion.ports.templates import TemplateName, Templates
from clarion.sealing.contents import OTHER_CONTENT, ContentName, MessagingContents

log = structlog.get_logger("clarion.pipeline")


class AtHand:
    """The templates and contents of one pump."""

    def __init__(self, *, templates: Templates, contents: MessagingContents) -> None:
        """Fetch from these."""
        self._templates = templates
        self._contents = contents
        self._wanted: set[TemplateName] = set()
        self._missing: set[TemplateName] = set()  # asked for, and not in the store
        self._wanted_contents: set[ContentName] = set()
        self._broken: dict[ContentName, str] = {}  # asked for, and not to be read

    async def fetch(self) -> None:
        """Bring into memory what claimed messages needed and did not find."""
        if self._wanted:
            loaded = await self._templates.load(self._wanted)
            self._missing = (self._missing | self._wanted) - loaded.keys()
            self._wanted = set()
        if self._wanted_contents:
            self._broken = await self._contents.load(self._wanted_contents)
            self._wanted_contents = set()

    def bundle(self, message: ClaimedMessage) -> Bundle | NotCalled:
        """Give the templates of a message, or say that they are not at hand."""
        name = message.template_key or message.event_type
        bundle = self._templates.held(message.tenant_id, name, message.template_version or 0)
        if bundle is not None:
            return bundle
        template = (message.tenant_id, name, message.template_version)
        self._wanted.add(template)
        if self._templates.is_quarantined(template):
            return NotCalled(reason=QUARANTINED, counts=False, is_held=True)
        if template in self._missing:
            return not_called(message, reason=f"there is no template {name!r} in its version")
        # This never ends the row, however often it happens: a worker that was just started has no template.
        return NotCalled(reason="the template was not in memory yet", counts=False)

    def content(self, message: ClaimedMessage) -> MessagingContent | NotCalled | None:
        """Give the content of a message's messaging job, or say that it is not at hand; None where it has no such job.

        One that is not what its job was made with is never sent.
        """
        if message.blob_hash is None:
            return None
        name = (message.tenant_id, message.job_guid)
        held = self._contents.held(*name)
        if held is None:
            self._wanted_contents.add(name)
            if name in self._broken:
                return not_called(message, reason=self._broken[name])
            return NotCalled(reason="its content was not in memory yet", counts=False)  # as with templates
        if not held.fingerprint.agrees(Fingerprint.stored(message.blob_hash)):
            log.critical("a content is not the one of its job", tenant_id=message.tenant_id, job=str(message.job_guid))
            return NotCalled(reason=OTHER_CONTENT, counts=False, is_defect=True)
        return held.content
