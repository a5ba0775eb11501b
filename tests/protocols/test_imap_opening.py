"""The IMAP connection is opened: greeting, TLS, capabilities, login, and what refusals mean."""

from OpenSSL import SSL

from mailgateway.errors import (
    CommandRefused,
    LoginRefused,
    LoginUnavailable,
    Throttled,
    TlsRefused,
    Unreachable,
)
from mailgateway.settings import Tls
from mailgateway.wire.sasl import BearerToken, Password
from tests.fakes.imap_script import ImapCase, ScriptedServer

PASSWORD = Password("ann@example.com", "correct horse battery")
TOKEN = BearerToken("ann@example.com", "mail.example.com", 993, "t0ken" * 300)


class OpeningTests(ImapCase):
    """The greeting, TLS, capabilities."""

    def test_asks_for_capabilities_that_the_greeting_did_not_tell(self) -> None:
        """Nothing is assumed of a server; brackets in a greeting's text tell nothing (T10)."""
        server = ScriptedServer()
        opening = server.start(server.connection.open())
        server.say(b"* OK mail [1.2.3.4] ready :-)")
        server.expect(b"CAPABILITY")
        server.say(b"* capability imap4rev1 idle", b"TAG OK")
        self.successResultOf(opening)
        self.assertTrue(server.connection.supports("Idle"))

    def test_bye_as_greeting_gives_its_reason(self) -> None:
        """The text of a refusal decides how long to wait, so it must not be lost (T17)."""
        server = ScriptedServer()
        opening = server.start(server.connection.open())
        server.say(b"* BYE Too many connections from your address")
        error = self.failed(opening, Throttled)
        self.assertIn("Too many connections", error.text)
        self.assertTrue(server.transport.aborted)

    def test_silence_instead_of_a_greeting(self) -> None:
        """A peer that accepts and says nothing is given up, by an abort (T2)."""
        server = ScriptedServer()
        opening = server.start(server.connection.open())
        server.clock.advance(19)
        self.assertNoResult(opening)
        server.clock.advance(1)
        self.failed(opening, Unreachable)
        self.assertTrue(server.transport.aborted)
        self.assertEqual(server.clock.getDelayedCalls(), [])

    def test_a_failed_handshake_is_not_an_unreachable_host(self) -> None:
        """A wrong certificate shows as the reason of the loss, before any greeting."""
        server = ScriptedServer()
        opening = server.start(server.connection.open())
        server.hang_up(SSL.Error([("SSL routines", "", "certificate verify failed")]))
        self.failed(opening, TlsRefused)

    def test_a_tls_error_later_is_a_lost_connection(self) -> None:
        """TLS that has worked is not refused; the path broke."""
        server = ScriptedServer().opened()
        running = server.start(server.connection.noop())
        server.hang_up(SSL.Error([("SSL routines", "", "unexpected eof while reading")]))
        self.failed(running, Unreachable)

    def test_starttls(self) -> None:
        """Capabilities told in plain text are forgotten and asked for again behind TLS."""
        server = ScriptedServer(Tls.STARTTLS)
        opening = server.start(server.connection.open())
        server.say(b"* OK [CAPABILITY IMAP4rev1 STARTTLS AUTH=GSSAPI] ready")
        server.expect(b"STARTTLS")
        server.say(b"TAG OK go on")
        self.assertTrue(server.transport.tls_started)
        server.expect(b"CAPABILITY")
        server.say(b"* CAPABILITY IMAP4rev1 AUTH=PLAIN", b"TAG OK done")
        self.successResultOf(opening)
        self.assertFalse(server.connection.supports("AUTH=GSSAPI"))

    def test_plain_text_behind_starttls_ends_the_connection(self) -> None:
        """Bytes that someone slipped in before the handshake are never read as the server's (row 52)."""
        server = ScriptedServer(Tls.STARTTLS)
        opening = server.start(server.connection.open())
        server.say(b"* OK [CAPABILITY IMAP4rev1 STARTTLS] ready")
        server.expect(b"STARTTLS")
        server.say(b"TAG OK go on", b"* CAPABILITY IMAP4rev1 AUTH=PLAIN", b"A2 OK done")
        self.failed(opening, TlsRefused)
        self.assertFalse(server.transport.tls_started)
        self.assertTrue(server.transport.aborted)
        server.silent()

    def test_starttls_that_is_not_offered_or_refused(self) -> None:
        """TLS is required by the settings, not by the offer (row 52)."""
        server = ScriptedServer(Tls.STARTTLS)
        opening = server.start(server.connection.open())
        server.say(b"* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] ready")
        self.failed(opening, TlsRefused)
        server = ScriptedServer(Tls.STARTTLS)
        opening = server.start(server.connection.open())
        server.say(b"* OK [CAPABILITY IMAP4rev1 STARTTLS] ready")
        server.expect(b"STARTTLS")
        server.say(b"TAG BAD no")
        self.failed(opening, TlsRefused)

    def test_preauth_before_starttls_is_refused(self) -> None:
        """Whoever logs us in before TLS wants to keep us from it (row 52)."""
        server = ScriptedServer(Tls.STARTTLS)
        opening = server.start(server.connection.open())
        server.say(b"* PREAUTH [CAPABILITY IMAP4rev1 STARTTLS] welcome")
        self.failed(opening, TlsRefused)
        server.silent()


class LoginTests(ImapCase):
    """One attempt, by the best way, and what its failure means."""

    def test_plain_with_initial_response(self) -> None:
        """With SASL-IR a login is one round trip; the response is one line, however long (T12)."""
        server = ScriptedServer().opened()
        login = server.start(server.connection.login(Password("a" * 100, "b" * 100)))
        self.assertEqual(server.expect(b"AUTHENTICATE PLAIN ").count(b"\r\n"), 1)
        server.say(b"TAG OK [CAPABILITY IMAP4rev1 IDLE ID] logged in")
        self.successResultOf(login)
        self.assertTrue(server.connection.authenticated)
        self.assertFalse(server.connection.supports("SASL-IR"))

    def test_capabilities_are_read_again_after_login(self) -> None:
        """Servers tell a longer list then; the old one counts no longer."""
        server = ScriptedServer().opened(b"IMAP4rev1 AUTH=PLAIN")
        login = server.start(server.connection.login(PASSWORD))
        server.expect(b"AUTHENTICATE PLAIN\r\n")
        server.say(b"+")
        server.expect(b"AGFubkBleGFtcGxlLmNvbQBjb3JyZWN0IGhvcnNlIGJhdHRlcnk=\r\n")
        server.say(b"* OK still checking :(", b"TAG OK")
        server.expect(b"CAPABILITY")
        server.say(b"* CAPABILITY IMAP4rev1 IDLE", b"TAG OK")
        self.successResultOf(login)
        self.assertTrue(server.connection.supports("IDLE"))

    def test_a_refused_token_is_played_to_its_end(self) -> None:
        """The error document is answered once, and its status tells an old token from a bad request (3b)."""
        server = ScriptedServer().opened()
        login = server.start(server.connection.login(TOKEN))
        sent = server.expect(b"AUTHENTICATE XOAUTH2 ")
        self.assertGreater(len(sent), 1000)
        server.say(b"+ eyJzdGF0dXMiOiI0MDAiLCJzY2hlbWVzIjoiQmVhcmVyIn0=")
        self.assertEqual(server.expect(), b"\r\n")
        server.say(b"* CAPABILITY IMAP4rev1", b"TAG NO [AUTHENTICATIONFAILED] Invalid credentials (Failure)")
        self.assertEqual(self.failed(login, LoginRefused).code, "400")

    def test_a_second_challenge_is_cancelled(self) -> None:
        """The token is never sent twice on a connection (T12)."""
        server = ScriptedServer().opened()
        login = server.start(server.connection.login(TOKEN))
        server.expect(b"AUTHENTICATE")
        server.say(b"+ e30=")
        self.assertEqual(server.expect(), b"\r\n")
        server.say(b"+ e30=")
        self.assertEqual(server.expect(), b"*\r\n")
        server.say(b"TAG BAD cancelled")
        self.failed(login, CommandRefused)

    def test_login_command(self) -> None:
        """Without SASL the LOGIN command does; a password that is not ASCII goes as a literal."""
        server = ScriptedServer().opened(b"IMAP4rev1")
        login = server.start(server.connection.login(Password('EX\\a"nn', "pässword")))
        self.assertTrue(server.expect(b'LOGIN "EX\\\\a\\"nn" {9}\r\n').endswith(b"{9}\r\n"))
        server.say(b"+ go on")
        self.assertEqual(server.expect(), "pässword\r\n".encode())
        server.say(b"TAG OK [CAPABILITY IMAP4rev1] in")
        self.successResultOf(login)

    def test_delegated_user_names_use_login(self) -> None:
        """Exchange takes ``user\\shared`` by LOGIN only."""  # noqa: D301 - shows one backslash
        server = ScriptedServer().opened()
        server.start(server.connection.login(Password("ann\\shared", "x")))
        server.expect(b'LOGIN "ann\\\\shared" x')

    def test_the_command_is_better_than_the_mechanism_of_its_name(self) -> None:
        """AUTHENTICATE LOGIN is obsolete, and serves only where LOGIN is disabled."""
        server = ScriptedServer().opened(b"IMAP4rev1 AUTH=LOGIN")
        server.start(server.connection.login(PASSWORD))
        server.expect(b"LOGIN ann@example.com ")
        server = ScriptedServer().opened(b"IMAP4rev1 AUTH=LOGIN LOGINDISABLED")
        server.start(server.connection.login(PASSWORD))
        server.expect(b"AUTHENTICATE LOGIN\r\n")

    def test_no_way_to_log_in(self) -> None:
        """A server without a usable mechanism is a named error, and no password in clear (row 51)."""
        server = ScriptedServer().opened(b"IMAP4rev1 LOGINDISABLED AUTH=GSSAPI")
        error = self.failed(server.start(server.connection.login(PASSWORD)), CommandRefused)
        self.assertEqual(error.code, "NOMECHANISM")
        self.assertIn("GSSAPI", error.text)
        server.silent()

    def test_no_login_without_tls_but_on_loopback(self) -> None:
        """A credential travels in clear inside this machine only, and only when configured so (T19)."""
        server = ScriptedServer(Tls.NONE).opened()
        self.failed(server.start(server.connection.login(PASSWORD)), TlsRefused)
        server.silent()
        server = ScriptedServer(Tls.NONE, "127.0.0.1").opened()
        server.start(server.connection.login(PASSWORD))
        server.expect(b"AUTHENTICATE PLAIN")

    def test_what_a_refusal_means(self) -> None:
        """Codes and known texts tell a wrong password from a busy server (rows 12, 13, 46 to 48)."""
        for answer, kind, code in (
            (b"NO [AUTHENTICATIONFAILED] no", LoginRefused, "AUTHENTICATIONFAILED"),
            (b"NO [ALERT] Application-specific password required", LoginRefused, ""),
            (b"NO authentication failed", LoginRefused, ""),
            (b"no", LoginRefused, ""),
            (b"NO [UNAVAILABLE] Temporary authentication failure.", LoginUnavailable, "UNAVAILABLE"),
            (b"NO Account is temporarily unavailable", LoginUnavailable, ""),
            (b"NO [ALERT] Too many simultaneous connections. (Failure)", Throttled, "ALERT"),
            (b"NO [LIMIT] slow down", Throttled, "LIMIT"),
            (b"NO [INUSE] busy", Throttled, "INUSE"),
            (b"BAD User is authenticated but not connected.", LoginUnavailable, "NOTCONNECTED"),
            (b"BAD Invalid SASL argument", CommandRefused, ""),
            (b"NO [PRIVACYREQUIRED] no", TlsRefused, "PRIVACYREQUIRED"),
        ):
            server = ScriptedServer().opened()
            login = server.start(server.connection.login(PASSWORD))
            server.expect(b"AUTHENTICATE")
            server.say(b"TAG " + answer)
            self.assertEqual(self.failed(login, kind).code, code, answer)

    def test_bye_during_login(self) -> None:
        """A server that hangs up on a login says why, and that is the error."""
        server = ScriptedServer().opened()
        login = server.start(server.connection.login(PASSWORD))
        server.say(b"* BYE Too many login failures")
        self.assertNoResult(login)
        server.hang_up()
        self.failed(login, Throttled)

    def test_an_echoed_credential_is_not_shown(self) -> None:
        """Errors are shown and logged, whatever a server puts into them."""
        server = ScriptedServer().opened()
        login = server.start(server.connection.login(PASSWORD))
        sent = server.expect(b"AUTHENTICATE")
        server.say(b"TAG BAD unknown: " + sent.strip() + b" or correct horse battery")
        error = self.failed(login, CommandRefused)
        self.assertNotIn("horse", error.text)
        self.assertNotIn("AGFubkBl", error.text)

    def test_identify_after_login(self) -> None:
        """ID is sent only when offered, and a refusal is no failure (rows 44, 45)."""
        server = ScriptedServer().preauthenticated()
        running = server.start(server.connection.identify({"name": "mailgateway", "version": "1"}))
        server.expect(b'ID ("name" "mailgateway" "version" "1")')
        server.say(b'* ID ("name" "Dovecot" "os" NIL)', b"TAG OK")
        self.assertEqual(self.successResultOf(running), {"name": "Dovecot"})
        server = ScriptedServer().preauthenticated(b"IMAP4rev1")
        self.assertEqual(self.successResultOf(server.start(server.connection.identify({"name": "x"}))), {})
        server.silent()
