"""What the pages for recipients say, in every language that they have. Pure.

A new language is one more entry of `WORDS`; a test holds that none of them leaves something out.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from clarion.domain.identity import Channel

DEFAULT: Final = "en"


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """All texts of the pages in one language.

    `{what}` is a category, `{channel}` how it comes, `{titles}` what types it has, `{cells}` several of both.
    """

    language: str
    channels: Mapping[Channel, str]
    by_channel: Mapping[Channel, str]

    unsubscribe: str
    unsubscribe_ask: str
    nothing_yet: str
    unsubscribed: str
    unsubscribed_says: str
    on_its_way: str
    undo: str
    undo_says: str
    undone: str
    undone_says: str
    required: str
    required_says: str
    bad: str
    bad_says: str
    failed: str
    failed_says: str
    unread: str
    unread_says: str

    preferences: str
    preferences_say: str
    such_as: str
    always: str
    always_says: str
    nothing_at_all: str
    held_says: str
    nothing_to_choose: str
    save: str
    saved: str
    now_on: str
    now_off: str
    nothing_changed: str
    changed_meanwhile: str


WORDS: Final[Mapping[str, Words]] = {
    one.language: one
    for one in (
        Words(
            language="en",
            channels={
                Channel.EMAIL: "Email",
                Channel.SMS: "Text message",
                Channel.PUSH: "Push message",
                Channel.CHAT: "Chat",
                Channel.INBOX: "Inbox",
            },
            by_channel={
                Channel.EMAIL: "by email",
                Channel.SMS: "by text message",
                Channel.PUSH: "as push messages",
                Channel.CHAT: "in chat",
                Channel.INBOX: "in your inbox",
            },
            unsubscribe="Unsubscribe",
            unsubscribe_ask="Press the button, and you get no more messages about “{what}” {channel}.",
            nothing_yet="Nothing has been changed yet.",
            unsubscribed="You are unsubscribed",
            unsubscribed_says="You get no more messages about “{what}” {channel}.",
            on_its_way="A message that is on its way already may still arrive.",
            undo="Undo",
            undo_says="That was a mistake? For an hour you can take it back here.",
            undone="You get them again",
            undone_says="You get messages about “{what}” {channel} again, as before.",
            required="You cannot unsubscribe from these messages",
            required_says="Messages about “{what}” are required: everybody gets them whom they concern. "
            "Nothing has been changed.",
            bad="This link does not work",
            bad_says="It was cut off when it was copied, or it is too old. Open the link in a newer message, whole. "
            "Nothing has been changed.",
            failed="That did not work",
            failed_says="Nothing has been changed. Please try again in a few minutes.",
            unread="That could not be read",
            unread_says="Nothing has been changed. Please open the link from the message again and use the button "
            "there.",
            preferences="What you get",
            preferences_say="Choose which messages you get, and how. What you have not ticked is not sent to you.",
            such_as="Such as: {titles}",
            always="Always sent",
            always_says="These are required: everybody gets them whom they concern.",
            nothing_at_all="At present nothing at all is sent to you, whatever is chosen here.",
            held_says="The sender has switched this off for you: {cells}. Ask the sender if you want it again.",
            nothing_to_choose="There is nothing to choose here at present.",
            save="Save",
            saved="Saved",
            now_on="You get from now on: {cells}",
            now_off="You no longer get: {cells}",
            nothing_changed="Nothing has been changed.",
            changed_meanwhile="Nothing has been changed, because the choice is no longer the same. Here is what you "
            "can choose now.",
        ),
        Words(
            language="de",
            channels={
                Channel.EMAIL: "E-Mail",
                Channel.SMS: "SMS",
                Channel.PUSH: "Push-Nachricht",
                Channel.CHAT: "Chat",
                Channel.INBOX: "Posteingang",
            },
            by_channel={
                Channel.EMAIL: "per E-Mail",
                Channel.SMS: "per SMS",
                Channel.PUSH: "als Push-Nachricht",
                Channel.CHAT: "im Chat",
                Channel.INBOX: "im Posteingang",
            },
            unsubscribe="Abmelden",
            unsubscribe_ask="Mit dem Knopf melden Sie sich ab: Sie erhalten dann keine Nachrichten zu „{what}“ "
            "{channel} mehr.",
            nothing_yet="Bis jetzt wurde nichts geändert.",
            unsubscribed="Sie sind abgemeldet",
            unsubscribed_says="Sie erhalten keine Nachrichten zu „{what}“ {channel} mehr.",
            on_its_way="Eine Nachricht, die schon unterwegs ist, kann noch ankommen.",
            undo="Rückgängig machen",
            undo_says="Das war ein Versehen? Eine Stunde lang können Sie es hier zurücknehmen.",
            undone="Sie erhalten die Nachrichten wieder",
            undone_says="Sie erhalten Nachrichten zu „{what}“ {channel} wieder wie zuvor.",
            required="Von diesen Nachrichten können Sie sich nicht abmelden",
            required_says="Nachrichten zu „{what}“ sind notwendig: Alle erhalten sie, die sie betreffen. "
            "Es wurde nichts geändert.",
            bad="Dieser Link funktioniert nicht",
            bad_says="Er wurde beim Kopieren abgeschnitten oder ist zu alt. Öffnen Sie den ganzen Link aus einer "
            "neueren Nachricht. Es wurde nichts geändert.",
            failed="Das hat nicht funktioniert",
            failed_says="Es wurde nichts geändert. Bitte versuchen Sie es in einigen Minuten noch einmal.",
            unread="Das konnte nicht gelesen werden",
            unread_says="Es wurde nichts geändert. Bitte öffnen Sie den Link aus der Nachricht noch einmal und "
            "benutzen Sie den Knopf dort.",
            preferences="Was Sie erhalten",
            preferences_say="Wählen Sie, welche Nachrichten Sie erhalten und auf welchem Weg. Was nicht angekreuzt "
            "ist, wird Ihnen nicht gesendet.",
            such_as="Zum Beispiel: {titles}",
            always="Wird immer gesendet",
            always_says="Diese Nachrichten sind notwendig: Alle erhalten sie, die sie betreffen.",
            nothing_at_all="Zurzeit wird Ihnen gar nichts gesendet, was auch immer hier gewählt ist.",
            held_says="Das hat der Absender für Sie abgestellt: {cells}. Fragen Sie dort, wenn Sie es wieder möchten.",
            nothing_to_choose="Zurzeit gibt es hier nichts zu wählen.",
            save="Speichern",
            saved="Gespeichert",
            now_on="Sie erhalten ab jetzt: {cells}",
            now_off="Sie erhalten nicht mehr: {cells}",
            nothing_changed="Es wurde nichts geändert.",
            changed_meanwhile="Es wurde nichts geändert, weil die Auswahl nicht mehr dieselbe ist. Hier steht, was Sie "
            "jetzt wählen können.",
        ),
    )
}
