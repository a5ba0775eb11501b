"""The Sent folder: found by purpose or name, looked into over a connection of its own, and filled."""

from typing import Any

from twisted.internet.defer import Deferred

from mailgateway.daemons import sent
from mailgateway.daemons.sent import KEEP_SECONDS, LOOK_SECONDS, REST_SECONDS, ImapSentFolder
from mailgateway.errors import (
    CommandRefused,
    LoginRefused,
    LoginUnavailable,
    PeerError,
    Throttled,
    Unreachable,
)
from mailgateway.ids import MessageId, OutboxId
from tests.daemons.sent_imap import SentHabits
from tests.daemons.world import IMAP_PORT, PASSWORD, Network, Run
from tests.flows.outbound import OutboundTestCase

ID = MessageId("<mg.f913c9.abc.12345678@example.org>")
MAIL = b"From: agent@example.org\r\nMessage-ID: " + ID.encode() + b"\r\nSubject: hi\r\n\r\nWords.\r\n"
OTHER = b"Message-ID: <other@example.org>\r\n\r\nabout " + ID.encode() + b"\r\n"


class SentTestCase(OutboundTestCase):
    """An account whose server has folders."""

    def setUp(self) -> None:
        super().setUp()
        self.network = Network()
        self.habits = SentHabits(folders={b"Sent": []}, listing=[rb'() "/" INBOX', rb'(\Sent) "/" Sent'])
        self.network.servers[IMAP_PORT] = self.habits.server
        self.open()

    def open(self, wanted: str = "") -> None:
        """A new process."""
        self.run_ = Run(self.network, self.gateway.database)
        self.now(self.run_.load())
        sent = ImapSentFolder(self.network, self.run_.logins, wanted, chance=lambda: 0.0)
        self.sent = sent
        self.addCleanup(self.close, sent)

    def close(self, sent: ImapSentFolder) -> None:
        """Let it go; nothing may be left."""
        closing = sent.close()
        self.network.settle()
        self.later(7)
        self.successResultOf(closing)

    def later(self, seconds: float) -> None:
        """Let time pass for everybody."""
        self.gateway.database.advance(seconds=seconds)
        self.network.advance(seconds)
        self.network.settle()

    def look(self, message_id: MessageId = ID) -> "Deferred[Any]":
        """Begin to look."""
        looking = Deferred.fromCoroutine(self.sent.find(message_id))
        self.network.settle()
        return looking

    def found(self, message_id: MessageId = ID) -> bytes | None:
        """Look, and be told."""
        raw: bytes | None = self.successResultOf(self.look(message_id))
        return raw

    def keep(self, raw: bytes = MAIL) -> "Deferred[Any]":
        """Begin to put a copy there."""
        keeping = Deferred.fromCoroutine(self.sent.keep(raw, ID))
        self.network.settle()
        return keeping

    def failed(self, looking: "Deferred[Any]", kind: type[PeerError]) -> Any:
        """What stood in the way."""
        return self.failureResultOf(looking, kind).value


class IdTests(SentTestCase):
    """What a mail of ours is called there."""

    def test_by_our_own_header(self) -> None:
        """The whole value in the header counts; what only speaks of it, or has no id, is another mail."""
        mine = b"X-Mailgateway-Id: o-1\r\nMessage-ID: <theirs@qq.com>\r\n\r\nWords.\r\n"
        others = [
            b"Message-ID: <a@b>\r\n\r\nX-Mailgateway-Id: o-1\r\n",
            b"X-Mailgateway-Id: o-12\r\nMessage-ID: <a@b>\r\n\r\n",
            b"X-Mailgateway-Id: o-1\r\n\r\nno id\r\n",
        ]
        for mails, expected in (([*others], None), ([mine, *others], MessageId("<theirs@qq.com>"))):
            self.habits.folders[b"Sent"] = mails
            looking = Deferred.fromCoroutine(self.sent.id_of(OutboxId("o-1")))
            self.network.settle()
            self.assertEqual(self.successResultOf(looking), expected)
        self.assertTrue(any(b"X-Mailgateway-Id" in line for line in self.habits.lines))


class FindTests(SentTestCase):
    """Looking for a mail."""

    def test_there_and_not_there(self) -> None:
        """The whole Message-ID counts; a mail that only speaks of it is another one."""
        self.habits.folders[b"Sent"] = [OTHER]
        self.assertIsNone(self.found())
        self.habits.folders[b"Sent"] = [MAIL, OTHER]
        self.assertEqual(self.found(), MAIL)

    def test_nothing_is_changed(self) -> None:
        """EXAMINE and PEEK only."""
        self.habits.folders[b"Sent"] = [MAIL]
        self.found()
        self.assertIn(b"EXAMINE Sent", self.habits.lines)
        self.assertNotIn("SELECT", self.habits.verbs)
        self.assertTrue(any(b"BODY.PEEK[]" in line for line in self.habits.lines))

    def test_the_raw_name_is_sent_back(self) -> None:
        """However a server writes it (row 40): no other spelling is accepted."""
        for raw, wanted in (
            (b"[Gmail]/G&APY-nderilmi&AV8- Postalar", ""),
            (b"Entwurf & Gesendet", "Entwurf & Gesendet"),
            (b"Gesendet &- fertig", "Gesendet & fertig"),
            ("Gönderilmiş".encode(), "Gönderilmiş"),
        ):
            self.habits.listing = [rb'() "/" INBOX', b'(\\Sent) "/" "' + raw + b'"']
            self.habits.folders = {raw: [MAIL]}
            self.open(wanted)
            self.assertEqual(self.found(), MAIL, raw)

    def test_the_setting_wins(self) -> None:
        """Over the server's word; also where the server does not list it."""
        self.habits.folders = {b"Sent": [], b"Elsewhere": [MAIL]}
        self.open("Elsewhere")
        self.assertEqual(self.found(), MAIL)

    def test_purposes_are_asked_for_where_it_is_possible(self) -> None:
        """RETURN (SPECIAL-USE), XLIST, or plain LIST, by what the server can."""
        for told, asked in (
            (b"IMAP4rev1 AUTH=PLAIN SPECIAL-USE LIST-EXTENDED", b'LIST "" "*" RETURN (SPECIAL-USE)'),
            (b"IMAP4rev1 AUTH=PLAIN SPECIAL-USE", b'LIST "" "*"'),
            (b"IMAP4rev1 AUTH=PLAIN XLIST", b'XLIST "" "*"'),
            (b"IMAP4rev1 AUTH=PLAIN", b'LIST "" "*"'),
        ):
            self.habits.login = b"OK [CAPABILITY " + told + b"] welcome"
            self.habits.lines.clear()
            self.open()
            self.assertIsNone(self.found())
            self.assertIn(asked, self.habits.lines, told)

    def test_by_name_where_nothing_is_marked(self) -> None:
        """A flat name, and one below the inbox; a name deep in an archive is another folder."""
        for name, line in (
            (b"Sent Messages", rb'() NIL "Sent Messages"'),
            (b"INBOX.Sent", rb'() "." INBOX.Sent'),
            (b"Gesendet", rb"(\HasNoChildren) NIL Gesendet"),
        ):
            self.habits.listing = [rb'() "/" INBOX', rb'() "/" Archive/2019/Sent', line]
            self.habits.folders = {name: [MAIL]}
            self.open()
            self.assertEqual(self.found(), MAIL, name)

    def test_no_sent_folder(self) -> None:
        """It is said, with what to do, and nothing is selected."""
        self.habits.listing = [rb'() "/" INBOX', rb'(\Sent \NoSelect) "/" Sent']
        error = self.failed(self.look(), CommandRefused)
        self.assertEqual(error.code, "NOSENT")
        self.assertIn("sent_folder", error.text)
        self.assertNotIn("EXAMINE", self.habits.verbs)

    def test_an_id_that_is_too_long(self) -> None:
        """It is not taken for one that is not there."""
        for local in ("x" * 900, "\ufffd" * 400):  # the second is how bytes that are no ASCII are read
            self.failed(self.look(MessageId(f"<{local}@example.org>")), CommandRefused)


class ConnectionTests(SentTestCase):
    """The connection: made when it is wanted, not kept for long, never used against the account."""

    def logins(self) -> int:
        """How often the server was asked to check the password."""
        return self.habits.verbs.count("AUTHENTICATE")

    def test_one_login_serves_a_read_back(self) -> None:
        """Six looks within 112 s, and then goodbye."""
        for pause in (2, 5, 15, 30, 59, 1):
            self.found()
            self.later(pause)
        self.assertEqual((self.logins(), self.network.accepted[0].gone), (1, False))
        self.later(REST_SECONDS)
        self.assertEqual((self.habits.verbs[-1], self.network.accepted[0].gone), ("LOGOUT", True))
        self.found()
        self.assertEqual(self.logins(), 2)

    def test_looks_come_one_after_another(self) -> None:
        """On one connection."""
        self.habits.folders[b"Sent"] = [MAIL]
        looks = [Deferred.fromCoroutine(self.sent.find(ID)) for _ in range(3)]
        self.network.settle()
        self.assertEqual([self.successResultOf(each) for each in looks], [MAIL] * 3)
        self.assertEqual(len(self.network.dialled), 1)

    def test_who_comes_and_says_who_he_is(self) -> None:
        """ID after the login, before EXAMINE (row 44)."""
        self.found()
        verbs = self.habits.verbs
        self.assertLess(verbs.index("ID"), verbs.index("EXAMINE"))
        self.assertLess(verbs.index("AUTHENTICATE"), verbs.index("ID"))

    def test_a_refused_password_counts_with_the_others(self) -> None:
        """The credential state is the account's: two refusals in all, wherever."""
        self.habits.login = b"NO [AUTHENTICATIONFAILED] wrong"
        self.failed(self.look(), LoginRefused)
        self.assertEqual(self.run_.imap.login.refusals, 1)
        for _ in range(200):
            self.later(300)
            self.failureResultOf(self.look(), PeerError)
        self.assertEqual(self.logins(), 2)

    def test_the_account_rests(self) -> None:
        """While the watching waits after a failure nobody else dials."""
        self.habits.login = b"NO [UNAVAILABLE] not now"
        self.failed(self.look(), LoginUnavailable)
        self.assertEqual(self.run_.imap.login.refusals, 0)
        self.habits.login = SentHabits().login
        self.later(299)
        self.failed(self.look(), LoginUnavailable)
        self.assertEqual(len(self.network.dialled), 1)
        self.later(1)
        self.assertIsNone(self.found())

    def test_a_server_that_asks_for_patience(self) -> None:
        """A throttled search ends the connection for as long as the server says."""
        hint = b"BAD Request is throttled. Suggested Backoff Time: 92415 milliseconds"
        self.habits.answers["UID"] = iter([hint])
        self.failed(self.look(), Throttled)
        self.later(92)
        self.failed(self.look(), Throttled)
        self.assertEqual(len(self.network.dialled), 1)
        self.later(1)
        self.assertIsNone(self.found())

    def test_a_server_that_hangs(self) -> None:
        """Wherever it does: the look has an end, and so has the connection."""
        for verb in ("AUTHENTICATE", "LIST", "EXAMINE"):
            self.habits.hangs_at = verb
            self.open()
            looking = self.look()
            self.assertNoResult(looking)
            self.later(LOOK_SECONDS)
            self.failed(looking, Unreachable)
            self.assertTrue(self.network.accepted[-1].gone, verb)

    def test_a_server_that_is_too_slow(self) -> None:
        """One look waits to its end; those that follow at once do not, each for as long again."""
        self.patch(sent, "LOOK_SECONDS", 10.0)
        self.habits.hangs_at = "EXAMINE"
        looking = self.look()
        self.later(10)
        self.failed(looking, Unreachable)
        self.habits.hangs_at = ""
        self.failed(self.look(), Unreachable)
        self.assertEqual(len(self.network.dialled), 1)
        self.later(10)
        self.assertIsNone(self.found())

    def test_a_sleep(self) -> None:
        """The connection is not believed in; the next look makes another one."""
        self.found()
        self.sent.woke()
        self.network.settle()
        self.assertTrue(self.network.accepted[0].gone)
        self.assertIsNone(self.found())
        self.assertEqual(len(self.network.dialled), 2)

    def test_a_sleep_ends_the_wait_for_the_network_only(self) -> None:
        """A server that asked for patience gets it."""
        make = self.network.servers.pop(IMAP_PORT)
        looking = self.look()
        self.later(1)
        self.failed(looking, Unreachable)
        self.network.servers[IMAP_PORT] = make
        self.failed(self.look(), Unreachable)
        self.sent.woke()
        self.assertIsNone(self.found())
        self.habits.answers["UID"] = iter([b"BAD Request is throttled."])
        self.failed(self.look(), Throttled)
        self.sent.woke()
        self.failed(self.look(), Throttled)

    def test_a_stop_in_the_middle(self) -> None:
        """Whoever looks is told, and nothing is left."""
        for verb in ("AUTHENTICATE", "EXAMINE", "LOGOUT"):
            self.habits.hangs_at = verb
            self.open()
            looking = self.look()
            looking.addErrback(lambda _: None)
            if verb == "AUTHENTICATE":
                looking.cancel()  # its owner stops with the account
            self.close(self.sent)
            self.later(1)
            self.assertTrue(self.network.accepted[-1].gone, verb)
            self.assertEqual(self.network.getDelayedCalls(), [], verb)
            self.failureResultOf(Deferred.fromCoroutine(self.sent.find(ID)), Unreachable)

    def test_no_secret_is_shown(self) -> None:
        """Not even when the server echoes it."""
        self.habits.login = b"NO [AUTHENTICATIONFAILED] " + PASSWORD.encode() + b" is wrong"
        error = self.failed(self.look(), LoginRefused)
        self.assertNotIn(PASSWORD, str(error))


class KeepTests(SentTestCase):
    """Putting a copy there."""

    def test_once(self) -> None:
        """The second time it is there."""
        self.assertTrue(self.successResultOf(self.keep()))
        self.assertFalse(self.successResultOf(self.keep()))
        self.assertEqual(self.habits.appended, [MAIL])

    def test_a_large_one_waits_for_the_server(self) -> None:
        """A refusal before the text is a refusal, and the connection stays in order."""
        large = MAIL + b"x" * 10_000 + b"\r\n"
        self.habits.answers["APPEND"] = iter([b"NO [OVERQUOTA] no room"])
        self.assertEqual(self.failed(self.keep(large), CommandRefused).code, "OVERQUOTA")
        self.assertTrue(self.successResultOf(self.keep(large)))
        self.assertEqual((self.habits.appended, len(self.network.dialled)), ([large], 1))

    def test_a_small_one_goes_along(self) -> None:
        """Where the server takes it unasked."""
        self.habits.login = b"OK [CAPABILITY IMAP4rev1 AUTH=PLAIN LITERAL-] welcome"
        self.assertTrue(self.successResultOf(self.keep()))
        self.assertEqual(self.habits.appended, [MAIL])

    def test_a_search_that_failed_has_not_found_nothing(self) -> None:
        """Then nothing is put there."""
        self.habits.answers["UID"] = iter([b"NO cannot search"])
        self.failed(self.keep(), CommandRefused)
        self.assertEqual(self.habits.appended, [])

    def test_a_server_that_hangs(self) -> None:
        """In the middle of it."""
        self.habits.hangs_at = "APPEND"
        keeping = self.keep()
        self.assertNoResult(keeping)
        self.later(KEEP_SECONDS)
        self.failed(keeping, Unreachable)
        self.assertTrue(self.network.accepted[-1].gone)
