"""The table of providers is read, consistent, and found by host."""

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.providers import (
    UNKNOWN,
    Poll,
    Results,
    SecretKind,
    folder_names,
    of_imap,
    of_smtp,
    offer_of_domain,
    offer_of_exchanger,
    offers,
    providers,
    username_of,
)
from tests.provider_rows import rows


class TableTests(SynchronousTestCase):
    """The table itself."""

    def test_every_row_is_sound(self) -> None:
        """It has a name, a host, a source, and numbers that make sense."""
        for each in providers():
            self.assertTrue(each.name and each.source and (each.imap or each.smtp), each)
            self.assertTrue(45 <= each.idle_seconds <= 29 * 60, each)
            self.assertTrue(each.poll_seconds == 0 or each.poll_seconds >= 45, each)
            for host in (*each.imap, *each.smtp):
                self.assertEqual(host, host.lower())
                self.assertNotIn("*", host.removeprefix("*."))

    def test_no_host_stands_twice(self) -> None:
        """Else the order would decide."""
        for door in ("imap", "smtp"):
            hosts = [host for each in providers() for host in getattr(each, door)]
            self.assertEqual(len(hosts), len(set(hosts)))

    def test_who_saves_what_is_sent(self) -> None:
        """Only those of whom it is known, and Gmail gets no copy whatever a search finds."""
        saving = {each.name for each in providers() if each.saves_sent}
        self.assertEqual(saving, {"Gmail", "Microsoft 365", "Zoho", "QQ"})
        self.assertEqual([each.name for each in providers() if not each.append_sent], ["Gmail"])

    def test_folder_names_are_in_lower_case_and_single(self) -> None:
        """As they are compared."""
        names = folder_names()
        for table in (names.sent, names.junk):
            self.assertEqual(list(table), [name.casefold() for name in table])
            self.assertEqual(len(table), len(set(table)))
        self.assertEqual(set(names.sent) & set(names.junk), set())


class HostTests(SynchronousTestCase):
    """Looking a host up."""

    def test_exact_pattern_and_unknown(self) -> None:
        """Without case, and never by a part of a name."""
        for host, name in (
            ("imap.gmail.com", "Gmail"),
            ("IMAP.Gmail.com.", "Gmail"),
            ("imap.gmail.com.evil.example", ""),
            ("evil-imap.gmail.com", ""),
            ("proxy.163.com", "163, 126, yeah.net"),
            ("163.com", ""),
            ("x163.com", ""),
            ("localhost", ""),
        ):
            self.assertEqual(of_imap(host).name, name, host)
        self.assertIs(of_smtp("smtp.example.org"), UNKNOWN)
        self.assertEqual(of_smtp("plus.smtp.mail.yahoo.com").name, "Yahoo")

    def test_what_is_assumed_of_a_stranger(self) -> None:
        """Nine minutes of IDLE, NOOP, a copy where none is found."""
        self.assertEqual(
            (UNKNOWN.idle, UNKNOWN.idle_seconds, UNKNOWN.poll, UNKNOWN.saves_sent, UNKNOWN.append_sent),
            (True, 540, Poll.NOOP, False, True),
        )
        self.assertEqual(UNKNOWN.results, Results.ABOVE)


class OfferTests(SynchronousTestCase):
    """What providers offer to mail programs."""

    def test_every_row_is_sound(self) -> None:
        """It can be found, has a source, servers with secrets or a word why not, and single names."""
        for each in offers():
            self.assertTrue(each.name and each.source and (each.domains or each.mx), each.name)
            self.assertEqual(each.imap is None, each.smtp is None, each.name)
            if each.imap is None:
                self.assertTrue(each.hints, each.name)
            else:
                self.assertTrue(each.secrets, each.name)
            for domain in (*each.domains, *each.mx):
                self.assertEqual(domain, domain.lower())
                self.assertLessEqual(domain.count("*"), 1)
            if SecretKind.APP_PASSWORD in each.secrets[:1]:
                self.assertTrue(each.hints, each.name)
        names = [each.name for each in offers()]
        self.assertEqual(len(names), len(set(names)))

    def test_every_domain_and_exchanger_leads_to_its_row(self) -> None:
        """No domain stands twice, and no pattern hides another."""
        for each in offers():
            for domain in each.domains:
                found = offer_of_domain(f"{domain.upper()}.")
                self.assertEqual(found and found.name, each.name, domain)
            for pattern in each.mx:
                found = offer_of_exchanger(pattern.replace("*", "a1"))
                self.assertEqual(found and found.name, each.name, pattern)

    def test_strangers(self) -> None:
        """Only exact domains and whole suffixes count."""
        for domain in ("notgmail.com", "gmail.com.example", "mail.gmail.com", "example.org"):
            self.assertIsNone(offer_of_domain(domain), domain)
        for host in ("google.com", "aspmx.l.google.com.example", "mx.zoho.eu.evil.example", "notgoogle.com"):
            self.assertIsNone(offer_of_exchanger(host), host)

    def test_what_a_star_stands_for(self) -> None:
        """It goes into the servers' names."""
        found = offer_of_exchanger("inbound-smtp.eu-west-1.amazonaws.com")
        self.assertEqual(found and found.imap and found.imap.host, "imap.mail.eu-west-1.awsapps.com")

    def test_user_names(self) -> None:
        """At iCloud and WEB.DE one logs in by the part before the @, for IMAP at least."""
        for domain, imap, smtp in (
            ("icloud.com", "robin", "robin@icloud.com"),
            ("web.de", "robin", "robin"),
            ("gmail.com", "robin@gmail.com", "robin@gmail.com"),
        ):
            found = offer_of_domain(domain)
            assert found is not None
            assert found.imap is not None
            assert found.smtp is not None
            names = [username_of(each.username, f"robin@{domain}") for each in (found.imap, found.smtp)]
            self.assertEqual(names, [imap, smtp])

    def test_who_wants_what(self) -> None:
        """The kinds of secrets are told before a password is asked for."""
        for domain, kinds in (
            ("gmail.com", ["app-password", "oauth"]),
            ("outlook.com", ["oauth"]),
            ("tuta.com", []),
        ):
            found = offer_of_domain(domain)
            self.assertEqual(found and list(found.secrets), kinds)

    def test_the_page_tells_what_the_table_holds(self) -> None:
        """Each row of ``docs/providers.md``, in order; ``python -m tests.provider_rows`` makes them."""
        page = (Path(__file__).parent.parent / "docs" / "providers.md").read_text(encoding="utf-8")
        told = [line for line in page.splitlines() if line.startswith("| ")]
        self.assertEqual(told[2:], rows())
