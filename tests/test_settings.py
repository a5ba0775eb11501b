"""The settings: what is filled in, what is refused, and that every problem is told at once."""

import string
import tomllib
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from attrs import AttrsInstance, fields
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import ConfigError, Problem
from mailgateway.secrets import Credential, PasswordCommand, PasswordEnv, PasswordFile, TokenCommand
from mailgateway.settings import Key, OAuth, Role, Settings, SingleMailboxProof, Tls, config_path, load, parse
from mailgateway.settings.file import LARGEST_FILE
from mailgateway.settings.rules import SECTIONS
from mailgateway.settings.written import AccountTable, ServerTable

DOCS = Path(__file__).parent.parent / "docs"
ENVIRON = {"HOME": "/home/robin"}
KINDS: dict[str, type[AttrsInstance]] = {"oauth": OAuth, "keys": Key}


def tables(**sections: dict[str, Any]) -> dict[str, Any]:
    """The smallest good settings, with sections replaced."""
    return {
        "people": {"allowed": ["robin@example.org"]},
        "accounts": {"main": account()},
        **sections,
    }


def account(imap: dict[str, Any] | None = None, smtp: dict[str, Any] | None = None) -> dict[str, Any]:
    """An account, with more keys for its servers."""
    return {
        "address": "agent@example.org",
        "watch": ["INBOX"],
        "imap": {"host": "imap.example.org", "password_file": "/etc/secret", **(imap or {})},
        "smtp": {"host": "smtp.example.org", **(smtp or {})},
    }


class Refusing(SynchronousTestCase):
    """A test case that asks for problems."""

    def problems(self, mapping: dict[str, Any], environ: dict[str, str] | None = None) -> dict[str, str]:
        """Parse what is wrong: path -> message."""
        error = self.assertRaises(ConfigError, parse, mapping, environ or ENVIRON)
        return {problem.path: problem.message for problem in error.problems}


class FilledInTests(Refusing):
    """What may be left out."""

    def test_the_smallest_settings(self) -> None:
        """Everything that has a default has it, in the form in which it is used."""
        found = parse(tables(), ENVIRON, host_name="laptop.example.org")
        self.assertEqual(
            (found.daemon.host, found.daemon.port, found.daemon.socket), ("127.0.0.1", 4177, None)
        )
        self.assertEqual(found.device.name, "laptop")
        self.assertEqual(found.people.notify, "robin@example.org")
        self.assertEqual(found.people.may_approve, found.people.allowed)
        self.assertEqual(found.security.accepted_tags, ("mg", "pi"))
        self.assertEqual(found.security.single_mailbox_proof, SingleMailboxProof.SENT_COPY)
        self.assertEqual(found.sending.tag, "main")
        self.assertEqual((found.sending.imap.port, found.sending.smtp.port), (993, 465))

    def test_the_state_directory(self) -> None:
        """Its own key, else the service manager's, else XDG's, else below the home directory."""
        everything = {**ENVIRON, "STATE_DIRECTORY": "/var/lib/a:/var/lib/b", "XDG_STATE_HOME": "/xdg"}
        for written, environ, expected in (
            ("~/here", everything, "/home/robin/here"),
            ("", everything, "/var/lib/a"),
            ("", {**ENVIRON, "XDG_STATE_HOME": "/xdg"}, "/xdg/mailgateway"),
            ("", ENVIRON, "/home/robin/.local/state/mailgateway"),
        ):
            found = parse(tables(daemon={"state_dir": written}), environ)
            self.assertEqual(found.daemon.state_dir, Path(expected))
        self.assertIn("daemon.state_dir", self.problems(tables(), {"PATH": "/bin"}))

    def test_the_database(self) -> None:
        """SQLite in the state directory, else what is given, which no repr shows."""
        found = parse(tables(daemon={"state_dir": "/s"}), ENVIRON).daemon
        self.assertEqual(found.database_url, "sqlite:////s/mailgateway.sqlite3")
        found = parse(tables(daemon={"database": "postgresql://me:hunter2@db/mg"}), ENVIRON).daemon
        self.assertEqual(found.database_url, "postgresql://me:hunter2@db/mg")
        self.assertNotIn("hunter2", repr(found))

    def test_smtp_inherits(self) -> None:
        """User name, secret and trust anchor come from IMAP where SMTP says nothing, and only there."""
        imap = {"username": "agent", "ca_file": "/ca.pem"}
        found = parse(tables(accounts={"main": account(imap)}), ENVIRON).sending
        self.assertEqual(found.smtp.username, "agent")
        self.assertEqual(found.smtp.ca_file, Path("/ca.pem"))
        self.assertEqual(found.smtp.secret, PasswordFile(Path("/etc/secret")))
        smtp = {"username": "relay", "password_env": "RELAY", "tls": "starttls"}
        found = parse(tables(accounts={"main": account(imap, smtp)}), ENVIRON).sending
        self.assertEqual((found.smtp.username, found.smtp.secret), ("relay", PasswordEnv("RELAY")))
        self.assertEqual((found.smtp.tls, found.smtp.port), (Tls.STARTTLS, 587))

    def test_sources_of_secrets(self) -> None:
        """Each key makes its own source; none is read."""
        for key, value, expected in (
            ("password_command", "pass mail", PasswordCommand("pass mail")),
            ("password_env", "SECRET", PasswordEnv("SECRET")),
            ("credential", "mail", Credential("mail")),
            ("token_command", "token mail", TokenCommand("token mail")),
        ):
            written = account({"password_file": "", key: value})
            self.assertEqual(parse(tables(accounts={"main": written}), ENVIRON).sending.imap.secret, expected)

    def test_relative_paths_are_beside_the_file(self) -> None:
        """Wherever the service is started, the same files are meant."""
        written = account({"password_file": "mail.password"})
        found = parse(tables(accounts={"main": written}), ENVIRON, source=Path("/etc/mg/config.toml"))
        self.assertEqual(found.sending.imap.secret, PasswordFile(Path("/etc/mg/mail.password")))
        self.assertEqual(found.source, Path("/etc/mg/config.toml"))

    def test_the_first_watched_account_sends(self) -> None:
        """Accounts keep the order of the file; one without ``watch`` is no gateway mailbox."""
        silent = {**account(), "watch": []}
        found = parse(tables(accounts={"zed": silent, "b": account(), "a": account()}), ENVIRON)
        self.assertEqual([item.tag for item in found.accounts.values()], ["zed", "b", "a"])
        self.assertEqual(found.sending.tag, "b")
        self.assertEqual(found.sending.domain, "example.org")

    def test_keys_of_other_machines(self) -> None:
        """A key has a file, a role and perhaps sessions; its role is the weaker one by default."""
        found = parse(tables(keys={"ci": {"file": "/k", "sessions": ["s"]}}), ENVIRON).keys["ci"]
        self.assertEqual((found.file, found.role, found.sessions), (Path("/k"), Role.SESSION, ("s",)))
        self.assertIn("keys.ci.file", self.problems(tables(keys={"ci": {"role": "person"}})))


class RefusedTests(Refusing):
    """What is wrong, where, and what to do."""

    def test_everything_at_once(self) -> None:
        """Problems of every kind and section come together, so that one edit mends them."""
        imap = {"tls": "maybe", "password_env": "X", "port": True}
        found = self.problems(
            {
                "deamon": {"port": 1},
                "daemon": {"prot": 4177, "host": 5, "port": 70_000, "public_url": "mail.example.org"},
                "security": {"route_ttl_hours": "soon", "accepted_tags": ["Mg!"], "alignment": "loose"},
                "people": {"allowed": ["robin at example"]},
                "accounts": {"main": account(imap, {"host": "smtp.example.org", "tls": "none"})},
            }
        )
        self.assertEqual(
            set(found),
            {
                "deamon",
                "daemon.prot",
                "daemon.host",
                "daemon.port",
                "daemon.public_url",
                "security.route_ttl_hours",
                "security.accepted_tags",
                "security.alignment",
                "people.allowed",
                "accounts.main.imap",
                "accounts.main.imap.tls",
                "accounts.main.imap.port",
                "accounts.main.smtp.tls",
            },
        )
        self.assertIn("did you mean `daemon`?", found["deamon"])
        self.assertIn("did you mean `port`?", found["daemon.prot"])
        self.assertIn("implicit, starttls, none", found["accounts.main.imap.tls"])
        self.assertIn("`password_file` and `password_env`", found["accounts.main.imap"])

    def test_missing(self) -> None:
        """What has no default is asked for by its path."""
        self.assertEqual(set(self.problems({})), {"people.allowed", "accounts"})
        found = self.problems(tables(accounts={"main": {"watch": ["INBOX"], "imap": {}}}))
        self.assertEqual(
            set(found),
            {
                "accounts.main.address",
                "accounts.main.imap.host",
                "accounts.main.imap",
                "accounts.main.smtp.host",
            },
        )
        self.assertIn(
            "accounts.main.watch", self.problems(tables(accounts={"main": {**account(), "watch": []}}))
        )
        self.assertIn("people.allowed", self.problems(tables(people={"allowed": []})))
        for written in (account({"password_file": " "}), account({"password_file": ""})):
            self.assertIn("accounts.main.imap", self.problems(tables(accounts={"main": written})))

    def test_plain_text_is_for_this_machine(self) -> None:
        """A password never travels in the clear; on loopback it may."""
        for host, right in (
            ("127.0.0.1", True),
            ("127.8.9.10", True),
            ("localhost", True),
            ("::1", True),
            ("10.0.0.1", False),
            ("127.evil.example", False),
            ("localhost.evil.example", False),
        ):
            written = tables(accounts={"main": account({"host": host, "tls": "none"})})
            if right:
                self.assertEqual(parse(written, ENVIRON).sending.imap.port, 143)
            else:
                self.assertIn("accounts.main.imap.tls", self.problems(written))

    def test_an_address_that_only_looks_like_one(self) -> None:
        """It is told here, and ends no start with a traceback."""
        for url in ("https://[x", "https://x.example:99999", "http://x.example:y/"):
            self.assertIn("daemon.public_url", self.problems(tables(daemon={"public_url": url})))

    def test_registrations(self) -> None:
        """Secrets go to https only, a person can sign in somewhere, and what an account names is there."""
        good = {"client_id": "x", "token_url": "https://x.example/t", "device_url": "https://x.example/d"}
        written = account({"password_file": "", "oauth": "work"})
        for changes, path, word in (
            ({"token_url": "http://x.example/t"}, "oauth.work.token_url", "https://"),
            ({"device_url": "http://127.0.0.1.evil.example/"}, "oauth.work.device_url", "https://"),
            ({"token_url": "https://user@x.example/t"}, "oauth.work.token_url", "https://"),
            ({"token_url": "https://x.example:99999/t"}, "oauth.work.token_url", "port"),
            ({"token_url": "https://x.example:0/t"}, "oauth.work.token_url", "port"),
            ({"token_url": "https://x.example:t/"}, "oauth.work.token_url", "https://"),
            ({"token_url": "https://[x/t"}, "oauth.work.token_url", "https://"),
            ({"token_url": "https://[1:2:::]/t"}, "oauth.work.token_url", "port"),
            ({"token_url": "https://\u0445.example/t"}, "oauth.work.token_url", "https://"),
            ({"device_url": "https://x.example/d?a=b"}, "oauth.work.device_url", "?"),
            ({"device_url": ""}, "oauth.work.authorize_url", "device_url"),
            ({"client_id": ""}, "oauth.work.client_id", "client id"),
            ({"redirect_host": "evil.example"}, "oauth.work.redirect_host", "localhost"),
            ({"authorize_parameters": ["offline"]}, "oauth.work.authorize_parameters", "name=value"),
            ({"scopes": ["two words"]}, "oauth.work.scopes", "blanks"),
        ):
            found = self.problems(tables(accounts={"main": written}, oauth={"work": {**good, **changes}}))
            self.assertEqual(list(found), [path])
            self.assertIn(word, found[path])
        found = self.problems(tables(accounts={"main": written}, oauth={"home": good}))
        self.assertEqual(list(found), ["accounts.main.imap.oauth"])
        self.assertIn("[oauth.work]", found["accounts.main.imap.oauth"])

    def test_what_is_known_of_the_provider_is_filled_in(self) -> None:
        """Google gives no lasting grant without a wish for one; what is written wins."""
        google = {
            "client_id": "x",
            "authorize_url": "https://accounts.google.com/o/oauth2/v2/auth",
            "token_url": "https://oauth2.googleapis.com/token",
        }
        tenant = "https://login.microsoftonline.com/0000/oauth2/v2.0/"
        microsoft = {"client_id": "x", "device_url": f"{tenant}devicecode", "token_url": f"{tenant}token"}
        own = {**google, "scopes": ["one"], "authorize_parameters": ["a=b"], "redirect_host": "localhost"}
        written = tables(accounts={"main": account({})}, oauth={"g": google, "m": microsoft, "o": own})
        found = parse(written, ENVIRON).oauth
        self.assertEqual(found["g"].scopes, ("https://mail.google.com/",))
        self.assertEqual(found["g"].authorize_parameters, ("access_type=offline", "prompt=consent"))
        self.assertEqual((found["g"].redirect_host, found["m"].redirect_host), ("127.0.0.1", "localhost"))
        self.assertIn("offline_access", found["m"].scopes)
        own_values = found["o"].scopes, found["o"].authorize_parameters, found["o"].redirect_host
        self.assertEqual(own_values, (("one",), ("a=b",), "localhost"))

    def test_what_comes_later_says_so(self) -> None:
        """The names are known, and the message says what works today."""
        written = account({"password_file": "", "vault": "mail"})
        self.assertIn("later", self.problems(tables(accounts={"main": written}))["accounts.main.imap.vault"])

    def test_between_settings(self) -> None:
        """Port 0 needs a socket; who approves must be allowed; a credential is a name."""
        self.assertIn("daemon.port", self.problems(tables(daemon={"port": 0})))
        self.assertEqual(parse(tables(daemon={"port": 0, "socket": "/s"}), ENVIRON).daemon.socket, Path("/s"))
        people = {"allowed": ["robin@example.org"], "may_approve": ["kim@example.org"]}
        self.assertIn("people.may_approve", self.problems(tables(people=people)))
        written = account({"password_file": "", "credential": "../shadow"})
        self.assertIn("accounts.main.imap.credential", self.problems(tables(accounts={"main": written})))

    def test_a_password_in_the_file(self) -> None:
        """The usual mistake gets its own answer."""
        found = self.problems(tables(accounts={"main": account({"password": "hunter2"})}))
        self.assertIn("`password_file`", found["accounts.main.imap.password"])

    def test_header_injection(self) -> None:
        """What ends in a header of a mail is one line."""
        written = {**account(), "from_name": "Agents\r\nBcc: all@example.org"}
        self.assertIn("accounts.main.from_name", self.problems(tables(accounts={"main": written})))

    def test_warnings(self) -> None:
        """Legal, but hardly meant: nobody is heard, an answer is lost, the API is open."""
        found = parse(
            tables(
                daemon={"host": "0.0.0.0"},
                people={"allowed": ["robin@example.org"], "notify": "team@example.org"},
            ),
            ENVIRON,
        ).warnings
        self.assertEqual(
            [sentence.split()[0] for sentence in found],
            ["security.trusted_authserv_ids", "people.notify", "daemon.host"],
        )
        trusted = tables(security={"trusted_authserv_ids": ["mx.example.org"]})
        self.assertEqual(parse(trusted, ENVIRON).warnings, ())

    def test_one_mailbox_for_both_is_warned_of(self) -> None:
        """It believes more than the usual way does, so ``status`` says whom, and which proof is active."""
        for proof, words in (
            ("sent-copy", "same mail lies in the Sent folder"),
            ("thread", "knows a Message-ID"),
        ):
            shared = {"authentication": "single-mailbox", "single_mailbox_proof": proof}
            (warning,) = parse(tables(security=shared), ENVIRON).warnings
            self.assertIn(words, warning)
            self.assertIn(f"the proof {proof}", warning)

    def test_a_provider_whose_results_say_nothing(self) -> None:
        """Where they are left out when DKIM fails, an id changes nothing; Microsoft has none to trust."""
        riseup = account({"host": "mail.riseup.net"})
        trusted = {"trusted_authserv_ids": ["mx1.riseup.net"]}
        (warning,) = parse(tables(accounts={"main": riseup}, security=trusted), ENVIRON).warnings
        self.assertIn("Riseup", warning)
        microsoft = account({"host": "outlook.office365.com"})
        self.assertEqual(parse(tables(accounts={"main": microsoft}), ENVIRON).warnings, ())


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["robin@example.org", "/etc/passwd", "~", "none", "thread", "127.0.0.1", "oauth", "vault"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
SERVERS = st.dictionaries(st.sampled_from([f.name for f in fields(ServerTable)]), VALUES, max_size=5)
ACCOUNTS = st.dictionaries(
    st.sampled_from([*(f.name for f in fields(AccountTable)), "imap", "smtp", "x"]),
    VALUES | SERVERS,
    max_size=5,
)
WHOLE = st.fixed_dictionaries(
    {},
    optional={
        **{
            name: VALUES
            | st.dictionaries(st.sampled_from([f.name for f in fields(made)]), VALUES, max_size=5)
            for name, made in SECTIONS.items()
        },
        "accounts": VALUES | st.dictionaries(st.text(max_size=5), VALUES | ACCOUNTS, max_size=3),
        "oauth": VALUES,
        "keys": VALUES,
        "else": VALUES,
    },
)
VARIABLES = st.dictionaries(
    st.text("ABDEHMNOPRST_", max_size=12).map(lambda name: f"MAILGATEWAY_{name}")
    | st.sampled_from(["MAILGATEWAY_DAEMON__PORT", "MAILGATEWAY_ACCOUNTS__MAIN__IMAP__HOST", "HOME"]),
    st.text(string.printable, max_size=12),
    max_size=3,
)


class AnythingTests(SynchronousTestCase):
    """Whatever stands in the file."""

    @settings(max_examples=100)
    @given(WHOLE, VARIABLES)
    def test_parse_raises_nothing_but_config_error(
        self, mapping: dict[str, Any], environ: dict[str, str]
    ) -> None:
        """Settings, or problems with a path and a sentence; never another exception."""
        try:
            found = parse(mapping, environ)
        except ConfigError as error:
            self.assertTrue(error.problems)
            for problem in error.problems:
                self.assertTrue(problem.path)
                self.assertTrue(problem.message)
        else:
            self.assertIsInstance(found, Settings)

    @settings(max_examples=60)
    @given(st.sampled_from([f.name for f in fields(ServerTable)]), st.sampled_from([0, 1, 2]), st.booleans())
    def test_no_message_repeats_a_value(self, key: str, shape: int, by_variable: bool) -> None:
        """A secret on the wrong line is not carried into a log by the message about it."""
        canary = "hunter2-canary\n"
        value: Any = [canary, [canary], {canary.strip(): canary}][shape]
        imap = {key: value, "surplus": canary, "tls": "none", "port": canary}
        environ = {**ENVIRON, "MAILGATEWAY_ACCOUNTS__MAIN__SMTP__PORT": canary} if by_variable else ENVIRON
        try:
            parse(tables(accounts={"main": account(imap)}), environ)
        except ConfigError as error:
            self.assertNotIn("hunter2", str(error))
        else:
            self.fail("a canary is no setting")


class EnvironmentTests(Refusing):
    """Overrides by the environment."""

    def test_values_take_the_type_of_their_key(self) -> None:
        """Numbers, flags, lists and paths; the file is not changed."""
        mapping = tables()
        environ = {
            **ENVIRON,
            "MAILGATEWAY_DAEMON__PORT": "5000",
            "MAILGATEWAY_DAEMON__METRICS_OPEN": "yes",
            "MAILGATEWAY_PEOPLE__ALLOWED": "robin@example.org, kim@example.org",
            "MAILGATEWAY_SECURITY__TRUSTED_AUTHSERV_IDS": '["mx.example.org"]',
            "MAILGATEWAY_ACCOUNTS__MAIN__IMAP__HOST": "other.example.org",
            "MAILGATEWAY_ACCOUNTS__MAIN__IMAP__PASSWORD_FILE": "~/secret",
        }
        found = parse(mapping, environ)
        self.assertEqual((found.daemon.port, found.daemon.metrics_open), (5000, True))
        self.assertEqual(found.people.allowed, ("robin@example.org", "kim@example.org"))
        self.assertEqual(found.security.trusted_authserv_ids, ("mx.example.org",))
        self.assertEqual(found.sending.imap.host, "other.example.org")
        self.assertEqual(found.sending.imap.secret, PasswordFile(Path("/home/robin/secret")))
        self.assertEqual(mapping, tables())

    def test_tables_with_dashes_and_capitals(self) -> None:
        """A variable's name has neither: the table of the file is found all the same."""
        mapping = tables(accounts={"My-Mail": account()})
        environ = {**ENVIRON, "MAILGATEWAY_ACCOUNTS__MY_MAIL__ADDRESS": "other@example.org"}
        self.assertEqual(parse(mapping, environ).accounts["My-Mail"].address, "other@example.org")

    def test_wrong_values_name_the_variable(self) -> None:
        """The path says which setting, the message where it came from."""
        environ = {**ENVIRON, "MAILGATEWAY_DAEMON__PORT": "many", "MAILGATEWAY_DAEMON__PROT": "1"}
        found = self.problems(tables(), environ)
        self.assertIn("$MAILGATEWAY_DAEMON__PORT", found["daemon.port"])
        self.assertIn("$MAILGATEWAY_DAEMON__PROT", found["daemon.prot"])

    def test_other_variables_are_none_of_ours(self) -> None:
        """``MAILGATEWAY_CONFIG`` and its like have no section."""
        environ = {**ENVIRON, "MAILGATEWAY_CONFIG": "/x", "MAILGATEWAY_SESSION": "s", "MAILGATEWAY__X": "1"}
        self.assertEqual(parse(tables(), environ).daemon.port, 4177)


class FileTests(SynchronousTestCase):
    """Finding and reading the file."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp())
        self.addCleanup(rmtree, self.folder)
        self.file = self.folder / "config.toml"
        self.password = self.folder / "password"
        self.password.write_text("secret\n")
        self.password.chmod(0o600)
        self.write(f'password_file = "{self.password}"')

    def write(self, imap: str) -> None:
        """Write good settings with more lines for IMAP."""
        self.file.write_text(
            '[people]\nallowed = ["robin@example.org"]\n'
            '[accounts.main]\naddress = "agent@example.org"\nwatch = ["INBOX"]\n'
            f'[accounts.main.imap]\nhost = "imap.example.org"\n{imap}\n'
            '[accounts.main.smtp]\nhost = "smtp.example.org"\n'
        )

    def problem(self, path: Path | None = None, **environ: str) -> Problem:
        """The one problem of a load."""
        error = self.assertRaises(ConfigError, load, path or self.file, {**ENVIRON, **environ})
        (problem,) = error.problems
        assert isinstance(problem, Problem)
        return problem

    def test_search_order(self) -> None:
        """Given, else set, else the user's; what was named is not looked for elsewhere."""
        user = self.folder / "mailgateway" / "config.toml"
        environ = {**ENVIRON, "MAILGATEWAY_CONFIG": "/set.toml", "XDG_CONFIG_HOME": str(self.folder)}
        self.assertEqual(config_path("/given.toml", environ), Path("/given.toml"))
        self.assertEqual(config_path(None, environ), Path("/set.toml"))
        del environ["MAILGATEWAY_CONFIG"]
        user.parent.mkdir()
        user.write_text("")
        self.assertEqual(config_path(None, environ), user)
        home = {"HOME": str(self.folder)}
        user = self.folder / ".config" / "mailgateway" / "config.toml"
        user.parent.mkdir(parents=True)
        user.write_text("")
        self.assertEqual(config_path(None, home), user)

    def test_nowhere(self) -> None:
        """Without any file the message says where it was looked for."""
        error = self.assertRaises(ConfigError, config_path, None, {"HOME": str(self.folder)})
        self.assertIn(f"{self.folder}/.config/mailgateway/config.toml", str(error))

    def test_unreadable(self) -> None:
        """Missing, a folder, no TOML, no text, too large: the file is named, and the line."""
        self.assertIn("nowhere.toml", self.problem(self.folder / "nowhere.toml").path)
        self.assertEqual(self.problem(self.folder).path, str(self.folder))
        self.file.write_text("this is [not toml\n= x")
        self.assertIn("line 1", self.problem().message)
        self.file.write_bytes(b"\xff\xfe")
        self.assertIn("UTF-8", self.problem().message)
        self.file.write_bytes(b"#" * (LARGEST_FILE + 1))
        self.assertIn("larger", self.problem().message)
        self.file.write_text(f"x = {'9' * 5000}")
        self.assertIn("TOML", self.problem().message)

    def test_good(self) -> None:
        """The settings know where they came from."""
        self.assertEqual(load(self.file, ENVIRON).source, self.file)

    def test_files_that_are_named_must_be_there(self) -> None:
        """A password that is missing or open to everybody is told at the start, not at the first login."""
        self.password.chmod(0o644)
        problem = self.problem()
        self.assertEqual(problem.path, "accounts.main.imap.password_file")
        self.assertIn(f"chmod 600 {self.password}", problem.message)
        self.password.unlink()
        self.assertEqual(self.problem().path, "accounts.main.imap.password_file")
        self.assertEqual(load(self.file, ENVIRON, check_files=False).sending.tag, "main")
        self.write('password_env = "X"\nca_file = "/nonexistent/ca.pem"')
        self.assertEqual(self.problem().path, "accounts.main.imap.ca_file")


class DocumentedTests(SynchronousTestCase):
    """The guide is kept true."""

    def test_every_setting_stands_in_the_guide(self) -> None:
        """Each key of each table is named in ``docs/settings.md`` in the form ``section.key``."""
        text = (DOCS / "settings.md").read_text(encoding="utf-8")
        names = [f"{section}.{f.name}" for section, made in SECTIONS.items() for f in fields(made)]
        names += [f"accounts.NAME.{f.name}" for f in fields(AccountTable)]
        names += [f"accounts.NAME.imap.{f.name}" for f in fields(ServerTable)]
        names += [f"{kind}.NAME.{f.name}" for kind in ("oauth", "keys") for f in fields(KINDS[kind])]
        self.assertEqual([name for name in names if f"`{name}`" not in text], [])

    def test_the_example_is_right(self) -> None:
        """The example of the guide parses as it stands."""
        text = (DOCS / "settings.md").read_text(encoding="utf-8")
        example = text.partition("```toml\n")[2].partition("```")[0]
        self.assertEqual(parse(tomllib.loads(example), ENVIRON).warnings, ())
