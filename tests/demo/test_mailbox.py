"""The mailbox in memory: raw bytes, numbers, flags and news."""

from datetime import UTC, datetime

from twisted.internet.defer import Deferred
from twisted.mail.imap4 import IMailbox, IMessage, IMessageFile, MailboxException, MessageSet
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from mailgateway.demo.mailbox import CAPACITY, DELETED, SEEN, Mailbox, MailboxFull

NOW = datetime(2026, 11, 30, 20, 15, tzinfo=UTC)
MAIL = b"Received: one\r\nReceived: two\r\nmessage-ID: <a@b>\r\nSubject: hello\r\n\r\nwords\r\n"


def mailbox() -> Mailbox:
    """Make an empty one."""
    return Mailbox(7, lambda: NOW)


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def newMessages(self, exists: int | None, recent: int | None) -> None:
        """Note the counts."""
        self.told.append((exists, recent))

    def flagsChanged(self, changed: dict[int, list[str]]) -> None:
        """Note the flags."""
        self.told.append(changed)


class MailboxTests(SynchronousTestCase):
    """What Twisted's server relies on."""

    def test_it_is_what_the_server_wants(self) -> None:
        """The interfaces are provided whole."""
        box = mailbox()
        letter = box.file(MAIL)
        self.assertTrue(verifyObject(IMailbox, box))
        self.assertTrue(verifyObject(IMessage, letter))
        self.assertTrue(verifyObject(IMessageFile, letter))

    def test_raw_bytes_are_kept(self) -> None:
        """Doubled fields and odd case survive; only bare line feeds become CRLF."""
        box = mailbox()
        self.assertEqual(box.file(MAIL).open().read(), MAIL)
        self.assertEqual(box.file(MAIL.replace(b"\r\n", b"\n")).open().read(), MAIL)

    def test_uids_grow_and_are_not_used_again(self) -> None:
        """A number that was given once never names another message."""
        box = mailbox()
        box.file(MAIL)
        box.file(MAIL, [DELETED])
        self.assertEqual(box.expunge(), [2])
        self.assertEqual(box.file(MAIL).uid, 3)
        self.assertEqual(box.getUID(2), 3)
        self.assertEqual((box.getUIDValidity(), box.getUIDNext(), box.getMessageCount()), (7, 4, 2))

    def test_sets_of_numbers(self) -> None:
        """UIDs and sequence numbers are told apart, and the star is the last of each."""
        box = mailbox()
        for flags in ([], [DELETED], []):
            box.file(MAIL, flags)
        box.expunge()
        self.assertEqual([letter.uid for _, letter in box.fetch(MessageSet(2, None), uid=True)], [3])
        self.assertEqual([number for number, _ in box.fetch(MessageSet(2, None), uid=False)], [2])
        self.assertEqual([letter.uid for _, letter in box.fetch(MessageSet(9, None), uid=True)], [3])
        self.assertEqual(mailbox().fetch(MessageSet(1, None), uid=True), [])

    def test_flags_are_stored_and_told(self) -> None:
        """Each of the three ways to store changes the message, and every listener hears the result."""
        box, listener = mailbox(), Listener()
        box.addListener(listener)
        box.file(MAIL)
        for flags, mode in (([SEEN], 1), (["\\Flagged"], 0), (["\\Flagged"], -1)):
            box.store(MessageSet(1), flags, mode, uid=True)
        self.assertEqual(listener.told, [(1, None), {1: [SEEN]}, {1: ["\\Flagged"]}, {1: []}])
        box.removeListener(listener)
        box.removeListener(listener)
        box.file(MAIL)
        self.assertEqual(len(listener.told), 4)

    def test_waiting_for_a_change(self) -> None:
        """A condition is looked at after each change, and a waiter that gave up disturbs nobody."""
        box = mailbox()
        box.file(MAIL)
        seen = Deferred.fromCoroutine(box.until(lambda b: SEEN in b.letters[0].flags))
        bored = Deferred.fromCoroutine(box.until(lambda _: False))
        bored.cancel()
        self.failureResultOf(bored)
        box.file(MAIL)
        self.assertNoResult(seen)
        box.store(MessageSet(1), [SEEN], 1, uid=True)
        self.successResultOf(seen)

    def test_bounds(self) -> None:
        """A full mailbox says so, and the folder itself cannot be removed."""
        box = mailbox()
        for _ in range(CAPACITY):
            box.file(b"\r\n")
        self.assertRaises(MailboxFull, box.file, MAIL)
        self.assertRaises(MailboxException, box.destroy)

    def test_structure(self) -> None:
        """Parts of a multipart can be asked for."""
        raw = b"Content-Type: multipart/mixed; boundary=x\n\n--x\n\none\n--x\nA: b\n\ntwo\n--x--\n"
        letter = mailbox().file(raw)
        self.assertTrue(letter.isMultipart())
        part = letter.getSubPart(1)
        self.assertEqual((part.isMultipart(), part.getHeaders(True)), (False, {"a": "b"}))
        self.assertEqual(letter.getHeaders(False, b"Content-Type", b"Nope"), letter.getHeaders(True))
