"""``mailgateway smoke`` at a real Dovecot beside the running service, wherever the mail lands."""

import re

from tests.acceptance.harness import AGENT, RESULTS, WorldTestCase


class SmokeTests(WorldTestCase):
    """What comes in is laid where the test wants it."""

    def land(self, folder: str) -> None:
        """Let the submission server's mails come into a folder."""

        def deliver() -> None:
            raw = f"Authentication-Results: {RESULTS}\r\n".encode() + self.sink.mails[-1].raw
            with self.dovecot.client(AGENT) as client:
                client.append(folder, "", "", raw)

        self.sink.on_mail = deliver

    def test_in_the_junk_folder(self) -> None:
        """It is found there, called a warning, and nothing is flagged, moved or deleted."""
        with self.dovecot.client(AGENT) as client:
            client.create("Junk")
        self.land("Junk")
        status, told = self.gateway.run_verb("smoke")
        [account] = told["accounts"]
        self.assertEqual((status, account["folder"], account["junk"]), (0, "Junk", True), told)
        [arrival] = [each for each in told["findings"] if each["step"] == "main arrival"]
        self.assertEqual(arrival["state"], "warning")
        self.assertIn("Mark it as no junk", arrival["advice"])
        with self.dovecot.client(AGENT, "Junk") as client:
            _, data = client.uid("FETCH", "1:*", "(FLAGS)")
        self.assertEqual(len(data), 1)
        self.assertNotIn("\\Seen", str(data))
        self.assertEqual([each for each in self.dovecot.commands(AGENT) if _changes(each)], [])

    def test_beside_other_mail(self) -> None:
        """What lies there and what comes meanwhile is left unread; the results on the mail are told."""
        other = "Message-ID: <other@example.com>\r\nSubject: other\r\n\r\nword\r\n"
        self.dovecot.deliver(AGENT, other.encode())
        self.land("INBOX")
        status, told = self.gateway.run_verb("smoke")
        [account] = told["accounts"]
        self.assertEqual((status, account["folder"]), (0, "INBOX"), told)
        self.assertEqual(account["authservId"], "mx.example.org")
        self.assertTrue(account["resultsAboveReceived"])
        self.assertEqual(self.dovecot.flags(AGENT)["<other@example.com>"], set())
        self.assertLess(account["backSeconds"], 3, "IDLE tells of it")
        self.assertEqual(self.gateway.client.pending(), [])

    def test_it_never_comes(self) -> None:
        """Status 1 when the time is over, and the server was not asked without a pause."""
        with self.dovecot.client(AGENT) as client:
            client.create("Junk")
        before = len(self.dovecot.commands(AGENT))
        status, told = self.gateway.run_verb("smoke", "--seconds", "7")
        self.assertEqual((status, told["accounts"][0]["folder"]), (1, ""), told)
        looks = [each for each in self.dovecot.commands(AGENT)[before:] if each.startswith("EXAMINE")]
        self.assertLessEqual(len(looks), 12, looks)
        self.assertGreaterEqual(len(looks), 6, looks)

    def test_usage(self) -> None:
        """An account that is not there, and an address that is none."""
        for words in (("--account", "other"), ("--to", "nobody")):
            status, _ = self.gateway.run_verb("smoke", *words)
            self.assertEqual(status, 2)
        self.assertEqual(self.sink.mails, [])


def _changes(command: str) -> bool:
    """Whether a command changes a mail; those of the service and of the tests do not, here."""
    return re.search(r"\b(STORE|MOVE|COPY|EXPUNGE)\b", command, re.IGNORECASE) is not None
