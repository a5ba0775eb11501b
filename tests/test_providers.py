"""The table of providers is read, consistent, and found by host."""

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.providers import UNKNOWN, Poll, Results, folder_names, of_imap, of_smtp, providers


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
        self.assertEqual(saving, {"Gmail", "Microsoft 365", "Zoho"})
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
