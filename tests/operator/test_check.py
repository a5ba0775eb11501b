"""``check``: each class of failure has its own sentence, and no password is tried more often than said."""

from pathlib import Path
from typing import Any

from twisted.internet.protocol import Factory

from mailgateway.operator.check import check
from mailgateway.operator.findings import State
from mailgateway.settings import Settings
from tests.client.stand_in import HEALTH, KEY, StandIn
from tests.fakes.certificates import Authority, self_signed, server_side
from tests.fakes.smtp_script import DROP
from tests.fakes.smtp_sink import free_port
from tests.operator.mail_world import ADDRESS, PASSWORD, WorldCase, reactor


class CheckTests(WorldCase):
    """One account, both servers."""

    async def check(self, settings: Settings | None = None, **more: Any) -> None:
        """Check, and hold what is always so: nothing is told twice, and no secret is told at all."""
        found = await check(reactor, settings or self.settings(), self.told.append, **more)
        self.assertEqual(list(found), [each for each in self.told if each.state is not State.UNDERWAY])
        self.assertNotIn(PASSWORD, self.said())
        self.assertEqual(self.smtp.taken, [])
        for each in found:
            if each.state is State.FAILED:
                self.assertTrue(each.advice, each)

    async def test_all_is_well(self) -> None:
        """Each step is told once, in its order, with its time; one login at each server, nothing sent."""
        await self.check()
        steps = [each.step for each in self.told if each.state is not State.UNDERWAY]
        self.assertEqual(
            steps,
            [
                "settings",
                "main imap connection",
                "main imap certificate",
                "main imap login",
                "main imap idle",
                "main imap folder INBOX",
                "main smtp connection",
                "main smtp certificate",
                "main smtp login",
                "main smtp size",
            ],
        )
        self.assertEqual(self.failures(), [])
        self.assertIsNotNone(self.only("main imap login").seconds)
        self.assertIn("1 MB", self.only("main smtp size").what)
        self.assertEqual((self.imap.verbs.count("AUTHENTICATE"), self.smtp.logins), (1, 1))
        self.assertNotIn("MAIL", self.smtp.verbs())

    async def test_a_name_without_an_address(self) -> None:
        """DNS is named, and the other server is looked at all the same."""
        await self.check(self.settings(('tls = "none"', 'tls = "implicit"'), host="nowhere.invalid"))
        self.assertRegex(self.only("main imap name").what, "has no address in DNS|no name server answers")
        self.assertEqual(
            self.only("main smtp connection").state if False else "main imap name", "main imap name"
        )
        self.assertEqual(self.smtp.connections, 1)

    async def test_nobody_listens(self) -> None:
        """A refused connection is told from silence."""
        await self.check(self.settings(imap=free_port()))
        found = self.only("main imap connection")
        self.assertIn("refuses connections", found.what)
        self.assertIn("Nobody listens there", found.advice)
        self.assertEqual(self.only("main smtp login").state, State.OK)

    async def test_a_server_that_hangs_up(self) -> None:
        """Whoever closes at once is no refusal of a password."""
        self.smtp.answer("GREETING", DROP)
        await self.check()
        self.assertEqual(self.failures(), ["main smtp connection"])

    async def test_wrong_password(self) -> None:
        """It is tried once at IMAP, and not at SMTP, where it is the same."""
        self.imap.login = b"NO [AUTHENTICATIONFAILED] Invalid credentials"
        await self.check()
        self.assertEqual(self.failures(), ["main imap login"])
        self.assertIn("the server refused the login", self.only("main imap login").what)
        self.assertEqual(self.only("main smtp login").state, State.SKIPPED)
        self.assertEqual((self.imap.verbs.count("AUTHENTICATE"), self.smtp.logins), (1, 0))

    async def test_another_secret_is_tried(self) -> None:
        """What is refused at IMAP says nothing of another password."""
        self.imap.login = b"NO [AUTHENTICATIONFAILED] Invalid credentials"
        other = self.folder / "other"
        other.write_text(PASSWORD)
        other.chmod(0o600)
        await self.check(
            self.settings((f'host = "127.0.0.1"\nport = {self.ports[1]}', _other(self.ports[1], other)))
        )
        self.assertEqual(self.failures(), ["main imap login"])
        self.assertEqual(self.only("main smtp login").state, State.OK)

    async def test_not_the_password(self) -> None:
        """A server that has trouble accuses nobody, and SMTP is tried nevertheless."""
        self.imap.login = b"NO [UNAVAILABLE] Temporary authentication failure"
        await self.check()
        self.assertEqual(self.failures(), ["main imap authentication"])
        found = self.only("main imap authentication")
        self.assertIn("The password may be right", found.advice)
        self.assertEqual(self.only("main smtp login").state, State.OK)

    async def test_answers_of_smtp(self) -> None:
        """A wrong password, SMTP AUTH switched off, no passwords at all, and trouble: four sentences."""
        for answer, step, words in (
            ("535 5.7.8 bad credentials", "login", "Look at `username` and the password"),
            (
                "535 5.7.139 SmtpClientAuthentication is disabled",
                "authentication",
                "An administrator switches",
            ),
            ("535 5.7.30 Basic authentication is not supported", "authentication", "OAuth"),
            ("454 4.7.0 Temporary authentication failure", "authentication", "The password may be right"),
        ):
            self.told.clear()
            self.smtp.answer("LOGIN", answer)
            await self.check()
            self.assertEqual(self.failures(), [f"main smtp {step}"], answer)
            self.assertIn(words, self.only(f"main smtp {step}").advice)

    async def test_no_login_offered(self) -> None:
        """A relay is not for submission; the password is not sent."""
        self.smtp.extensions = ["SIZE 1000"]
        await self.check()
        self.assertIn("offers no login", self.only("main smtp authentication").what)
        self.told.clear()
        self.smtp.extensions = ["AUTH GSSAPI NTLM"]
        await self.check()
        found = self.only("main smtp authentication")
        self.assertIn("GSSAPI, NTLM", found.what)
        self.assertIn("Nothing was tried", found.advice)
        self.assertEqual(self.smtp.logins, 0)

    async def test_a_folder_that_is_not_there(self) -> None:
        """It is named, and the others are still looked at."""
        self.imap.answers["EXAMINE"] = iter([b"NO [NONEXISTENT] no such mailbox"])
        await self.check(self.settings(('watch = ["INBOX"]', 'watch = ["Robin", "INBOX"]')))
        self.assertEqual(self.failures(), ["main imap folder Robin"])
        self.assertIn("[accounts.main]", self.only("main imap folder Robin").advice)
        self.assertEqual(self.only("main imap folder INBOX").state, State.OK)

    async def test_no_idle(self) -> None:
        """That is no failure: answers come later."""
        self.imap.greeting = b"* OK [CAPABILITY IMAP4rev1 SASL-IR AUTH=PLAIN] ready"
        self.imap.login = b"OK [CAPABILITY IMAP4rev1] welcome"
        await self.check()
        found = self.only("main imap idle")
        self.assertEqual((found.state, self.failures()), (State.NOTE, []))
        self.assertIn("scan_interval_seconds", found.advice)

    async def test_sources_that_give_nothing(self) -> None:
        """A command that fails, a token that nobody has granted, and a credential of the service manager."""
        source = f'password_file = "{self.password}"'
        await self.check(self.settings((source, 'password_command = "echo correct horse; exit 3"')))
        self.assertEqual(self.failures(), ["main imap secret", "main smtp secret"])
        found = self.only("main imap secret")
        self.assertIn("ended with status 3", found.what)
        self.assertIn("Run the command by hand", found.advice)
        self.told.clear()
        self.password.unlink()
        await self.check()
        self.assertIn("cannot be read", self.only("main imap secret").what)
        self.told.clear()
        registration = (
            '[people]\nallowed = ["robin@example.org"]\n[oauth.mail]\nclient_id = "c"\n'
            'token_url = "https://id.example.org/token"\ndevice_url = "https://id.example.org/device"\n'
        )
        people = '[people]\nallowed = ["robin@example.org"]\n'
        (self.folder / "state").mkdir(0o700)
        await self.check(self.settings((source, 'oauth = "mail"'), (people, registration)))
        self.assertIn("mailgateway auth mail", self.only("main imap secret").advice)
        self.told.clear()
        await self.check(self.settings((source, 'credential = "mail"')))
        found = self.only("main imap login")
        self.assertEqual((found.state, self.failures()), (State.SKIPPED, []))
        self.assertIn("LoadCredential=mail", found.advice)
        self.assertEqual((self.imap.verbs.count("AUTHENTICATE"), self.smtp.logins), (0, 0))

    async def test_while_the_service_is_refused(self) -> None:
        """Its count of tries is not undermined, unless that is wanted."""
        service = StandIn()
        service.start()
        self.addCleanup(service.stop)
        state = self.folder / "state"
        state.mkdir(0o700)
        key = state / "secret.key"
        key.write_text(f"{KEY}\n")
        key.chmod(0o600)
        self.assertEqual([each["state"] for each in HEALTH["accounts"]], ["refused"])
        settings = self.settings(port=service.base.port)
        await self.check(settings)
        self.assertEqual((self.imap.verbs.count("AUTHENTICATE"), self.smtp.logins), (0, 0))
        self.assertIn("mailgateway check --force", self.only("main imap login").advice)
        self.assertEqual(self.failures(), [])
        self.told.clear()
        await self.check(settings, again=True)
        self.assertEqual((self.imap.verbs.count("AUTHENTICATE"), self.smtp.logins), (1, 1))


def _other(port: int, password: Path) -> str:
    return f'host = "127.0.0.1"\nport = {port}\npassword_file = "{password}"\nusername = "{ADDRESS}"'


class CertificateTests(WorldCase):
    """What may be wrong with TLS, at IMAP with TLS from the first byte."""

    async def at(self, pem: bytes, trust: bytes | None, host: str = "localhost") -> str:
        """Check against a certificate; the step that failed, its sentence and its advice."""
        self.told.clear()
        port = self.listen(Factory.forProtocol(self.imap.server), server_side(pem))
        changes = [(f'port = {port}\ntls = "none"', f"port = {port}")]
        if trust is not None:
            file = self.folder / "ca.pem"
            file.write_bytes(trust)
            changes = [(changes[0][0], f'{changes[0][1]}\nca_file = "{file}"')]
        await check(reactor, self.settings(*changes, imap=port, host=host), self.told.append)
        self.assertNotIn("main imap login", self.failures())
        return "\n".join(
            f"{each.state} {each.what} {each.advice}"
            for each in self.told
            if each.step == "main imap certificate"
        )

    async def test_each_has_its_own_sentence(self) -> None:
        """Expired, for another name, from nobody known, self-signed."""
        authority = Authority()
        told = await self.at(authority.issue("localhost", expired=True), authority.pem)
        self.assertRegex(told, "failed .*has expired Whoever runs the server has to renew it")
        told = await self.at(authority.issue("mail.example.net"), authority.pem)
        self.assertRegex(told, "failed .*is for another name Write the name")
        told = await self.at(authority.issue("localhost"), None)
        self.assertRegex(told, "failed .*unknown authority .*`ca_file` in .accounts.main.imap.")
        own, _ = self_signed("localhost")
        told = await self.at(own, None)
        self.assertRegex(told, "failed .*self-signed .*`ca_file`")
        told = await self.at(authority.issue("localhost"), b"no certificate at all")
        self.assertRegex(told, "failed .*no readable certificate.*`ca_file`")
        self.assertEqual(self.imap.verbs, [])

    async def test_a_good_one(self) -> None:
        """Its issuer and days are told; one that ends soon is a warning."""
        authority = Authority()
        self.assertRegex(
            await self.at(authority.issue("localhost"), authority.pem), r"^ok TLSv1\.3.* days left"
        )
        own, public = self_signed("localhost")
        self.assertRegex(await self.at(own, public), r"^warning TLSv1\.3.* 0 days left.*should renew")

    async def test_tls_that_is_not_there(self) -> None:
        """A port without TLS, and STARTTLS that is not offered; no password goes out."""
        tls = ('tls = "none"', 'tls = "implicit"')
        await check(reactor, self.settings(tls), self.told.append)
        self.assertEqual(self.failures(), ["main imap certificate", "main smtp certificate"])
        self.assertIn("may not fit each other", self.only("main imap certificate").advice)
        self.told.clear()
        await check(reactor, self.settings((tls[0], 'tls = "starttls"')), self.told.append)
        self.assertEqual(self.failures(), ["main imap certificate", "main smtp certificate"])
        self.assertIn("Without TLS no password is sent", self.only("main imap certificate").advice)
        self.assertEqual(self.smtp.logins, 0)
