"""An account is not locked by trying: refused logins are counted at the servers, whoever tries."""

from typing import Any

from tests.acceptance.harness import AGENT, WorldTestCase
from tests.fakes.dovecot import eventually

NEW = "another-horse-8Rw2"


class RefusedTests(WorldTestCase):
    """The password was changed at the servers, and not here."""

    def run_verb(self, *words: str) -> tuple[int, dict[str, Any], int, int]:
        """Run a verb; its status, its JSON, and the logins that were refused meanwhile, IMAP and SMTP."""
        before = self.dovecot.refusals(), self.sink.logins_refused
        status, told = self.gateway.run_verb(*words)
        return (
            status,
            told,
            self.dovecot.refusals() - before[0],
            self.sink.logins_refused - before[1],
        )

    def change_password(self) -> None:
        """Change it at both servers; every connection is cut."""
        self.dovecot.users = {AGENT: NEW}
        self.sink.users = {AGENT: NEW}
        self.dovecot.restart()

    def test_beside_the_service(self) -> None:
        """The service tries twice at most; the tools not at all while it is held, and once when told to."""
        self.change_password()
        self.wait_account("refused")
        for words in (["check"], ["smoke"], ["smoke", "--plus"], ["doctor"], ["check"]):
            status, told, *refused = self.run_verb(*words)
            self.assertEqual(refused, [0, 0], (words, told))
            self.assertEqual(told["ok"], status == 0)
        status, told, *_ = self.run_verb("smoke")
        self.assertEqual(status, 1)
        self.assertIn("mailgateway smoke --force", told["findings"][0]["advice"])
        for words in (["check", "--force"], ["smoke", "--force"], ["doctor", "--force"]):
            status, told, *refused = self.run_verb(*words)
            self.assertEqual((status, refused), (1, [1, 0]), (words, told))
        by_tools = 3
        self.gateway.stop()
        self.gateway.start()
        self.wait_account("refused")
        self.assertLessEqual(self.dovecot.refusals() + self.sink.logins_refused - by_tools, 2)
        self.assertEqual(self.sink.mails, [])

    def test_without_the_service(self) -> None:
        """Each run shows the password once, at one of the servers."""
        self.gateway.stop()
        self.change_password()
        for words in (["check"], ["smoke", "--plus"], ["doctor"]):
            status, told, *refused = self.run_verb(*words)
            self.assertEqual((status, refused), (1, [1, 0]), (words, told))

    def test_refused_for_sending_alone(self) -> None:
        """What IMAP takes may be refused by SMTP: once a run, and the service is not held for it."""
        self.sink.users = {AGENT: NEW}
        for words in (["check"], ["smoke", "--plus"], ["doctor"]):
            status, told, *refused = self.run_verb(*words)
            self.assertEqual((status, refused), (1, [0, 1]), (words, told))
        self.dovecot.wait_idle(AGENT)

    def test_taken_again(self) -> None:
        """After the password is right here too, ``--force`` shows it, and a reload lets the service in."""
        self.change_password()
        self.wait_account("refused")
        (self.folder / "password").write_text(f"{NEW}\n")
        self.sink.on_mail = lambda: self.dovecot.deliver(AGENT, self.sink.mails[-1].raw)
        status, told, *refused = self.run_verb("smoke", "--force")
        self.assertEqual((status, refused), (0, [0, 0]), told)
        self.gateway.client.reload()
        eventually("the service is let in", lambda: self.dovecot.idling(AGENT))
