"""Replies on a real Dovecot: from the mailbox to the session that asked, whatever others do meanwhile."""

import subprocess
import time

from tests.acceptance.harness import AGENT, PASSWORD, ROBIN, WorldTestCase
from tests.fakes.dovecot import eventually, require


class RoundTripTests(WorldTestCase):
    """The main job."""

    def test_by_lmtp(self) -> None:
        """The typed words, and only those, reach the session; the mail is read after the ack, not before."""
        asked = self.ask()
        message_id = self.deliver_reply(asked, "PostgreSQL, please.\n\nWe have it anyway.")
        delivery = self.poll(asked)
        self.assertEqual(self.words(delivery), "PostgreSQL, please.\n\nWe have it anyway.")
        self.assertEqual((delivery["sessionId"], delivery["from"]), (asked.session, ROBIN))
        self.assertFalse(self.seen(message_id))
        self.gateway.client.claim(delivery["id"], asked.instance)
        self.assertFalse(self.seen(message_id))
        self.gateway.client.ack(delivery["id"], asked.instance)
        self.wait_seen(message_id)
        self.assert_nothing_pending(asked)

    def test_by_swaks(self) -> None:
        """The same with a mail that an independent program sends."""
        swaks = require("swaks", "swaks")
        asked = self.ask()
        raw, message_id = self.reply(asked, "SQLite will do.")
        path = self.folder / "reply.eml"
        path.write_bytes(raw.replace(b"\r\n", b"\n"))
        command = [
            swaks,
            "--protocol",
            "LMTP",
            "--socket",
            str(self.dovecot.lmtp_socket),
            "--helo",
            "localhost",
        ]
        command += ["--from", ROBIN, "--to", AGENT, "--data", f"@{path}", "--silent", "2"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        delivery = self.poll(asked)
        self.assertEqual(self.words(delivery), "SQLite will do.")
        self.take(asked, delivery)
        self.wait_seen(message_id)

    def test_to_the_session_that_asked(self) -> None:
        """Two sessions ask, the answers come in the other order, and each gets its own."""
        first, second = self.ask("First?"), self.ask("Second?")
        self.deliver_reply(second, "to the second")
        self.deliver_reply(first, "to the first")
        self.assertEqual(self.words(self.poll(first)), "to the first")
        self.assertEqual(self.words(self.poll(second)), "to the second")

    def test_idle_wakes_a_waiting_poll(self) -> None:
        """A poll that waits is answered as soon as the server tells of the mail, and not by the next scan."""
        asked = self.ask()
        self.dovecot.wait_idle(AGENT)
        waiting = self.polling(asked)
        began = time.monotonic()
        self.deliver_reply(asked, "now")
        ended, deliveries = waiting.result(40)
        self.assertEqual([self.words(delivery) for delivery in deliveries], ["now"])
        self.assertLess(ended - began, 5, "Dovecot itself waits half a second; a scan comes after sixty")

    def test_the_log_holds_no_secret(self) -> None:
        """Neither the password nor what was written stands in the log."""
        asked = self.ask("Which xylophone?")
        self.deliver_reply(asked, "the marmalade one")
        self.take(asked, self.poll(asked))
        key = (self.gateway.state_dir / "secret.key").read_text().strip()
        log = self.gateway.log()
        for secret in (PASSWORD, key, "xylophone", "marmalade", "Traceback"):
            self.assertNotIn(secret, log)


class OthersTests(WorldTestCase):
    """A second mail program on the same mailbox, and a server that changes under us."""

    def test_second_client(self) -> None:
        """Reading, flagging, deleting and expunging by others hides nothing and loses nothing."""
        asked = self.ask()
        others = [f"<unrelated-{number}@example.com>" for number in range(3)]
        for other in others:
            self.dovecot.deliver(
                AGENT, f"Message-ID: {other}\r\nFrom: x@example.com\r\n\r\nhello\r\n".encode()
            )
        with self.dovecot.client(AGENT) as client:
            client.uid("STORE", self.dovecot.uid_of(client, others[0]), "+FLAGS", "(\\Flagged)")
            client.uid("STORE", self.dovecot.uid_of(client, others[1]), "+FLAGS", "(\\Deleted)")
            client.expunge()
            message_id = self.deliver_reply(asked, "read by another first")
            client.uid("STORE", self.dovecot.uid_of(client, message_id), "+FLAGS", "(\\Seen \\Flagged)")
            client.uid("STORE", self.dovecot.uid_of(client, others[2]), "+FLAGS", "(\\Deleted)")
            client.expunge()
        delivery = self.poll(asked)
        self.assertEqual(self.words(delivery), "read by another first")
        self.take(asked, delivery)
        again = self.ask()
        gone = self.deliver_reply(again, "deleted before the ack")
        delivery = self.poll(again)
        with self.dovecot.client(AGENT) as client:
            client.uid("STORE", self.dovecot.uid_of(client, gone), "+FLAGS", "(\\Deleted)")
            client.expunge()
        self.take(again, delivery)
        self.assert_nothing_pending(again)
        flags = self.dovecot.flags(AGENT)
        self.assertEqual(flags[others[0]], {"\\Flagged"})
        self.assertEqual(flags[message_id], {"\\Seen", "\\Flagged"})
        third = self.ask()
        self.deliver_reply(third, "still watching")
        self.assertEqual(self.words(self.poll(third)), "still watching")

    def test_only_peeking(self) -> None:
        """No command of ours marks anything as read, and nothing is searched by its being unread."""
        asked = self.ask()
        self.deliver_reply(asked, "yes")
        self.poll(asked)
        commands = [command.upper() for command in self.dovecot.commands(AGENT)]
        self.assertTrue(any("FETCH" in command for command in commands), commands)
        for command in commands:
            self.assertNotIn("BODY[", command)
            self.assertNotIn("RFC822 ", command.replace("RFC822.SIZE", "") + " ")
            self.assertNotIn("UNSEEN", command)

    def test_renumbered_folder(self) -> None:
        """With a new UIDVALIDITY a pending reply keeps its id, and what was acked does not come again."""
        done, waiting = self.ask("Done?"), self.ask("Waiting?")
        self.deliver_reply(done, "acked before")
        self.take(done, self.poll(done))
        message_id = self.deliver_reply(waiting, "pending over the change")
        before = self.poll(waiting)
        self.dovecot.recreate(AGENT)
        self.dovecot.wait_idle(AGENT, 60)

        def rebound() -> bool:
            found = self.gateway.client.pending(waiting.session)
            return [d["uidValidity"] for d in found] not in ([before["uidValidity"]], [])

        eventually("the pending reply has its new numbers", rebound, 60)
        after = self.poll(waiting)
        self.assertEqual((after["id"], self.words(after)), (before["id"], "pending over the change"))
        self.assert_nothing_pending(done)
        self.take(waiting, after)
        self.wait_seen(message_id)
        third = self.ask("New?")
        self.deliver_reply(third, "under the new numbers")
        self.assertEqual(self.words(self.poll(third)), "under the new numbers")
        self.assert_nothing_pending(done)

    def test_server_restart(self) -> None:
        """When the mail server comes back the service does too, and finds what arrived meanwhile."""
        asked = self.ask()
        self.dovecot.restart()
        self.deliver_reply(asked, "while you were away")
        delivery = self.poll(asked, 60)
        self.assertEqual(self.words(delivery), "while you were away")
        self.take(asked, delivery)
        self.dovecot.wait_idle(AGENT, 60)
