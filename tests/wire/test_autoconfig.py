"""Autoconfig documents: what is read of them, and what hostile ones come to."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import PeerError, ProtocolViolation, TlsRefused
from mailgateway.providers import SecretKind, Server
from mailgateway.wire.autoconfig import LARGEST, read

IMAP = """<incomingServer type="imap"><hostname>imap.%EMAILDOMAIN%</hostname><port>993</port>
<socketType>SSL</socketType><username>%EMAILADDRESS%</username>
<authentication>OAuth2</authentication><authentication>password-cleartext</authentication></incomingServer>"""
SMTP = """<outgoingServer type="smtp"><hostname>SMTP.example.net</hostname><port>587</port>
<socketType>STARTTLS</socketType><username>%EMAILLOCALPART%</username></outgoingServer>"""


def document(*servers: str) -> bytes:
    """A document with these servers."""
    head = "<clientConfig version='1.1'><emailProvider id='x'><displayName>Example Mail</displayName>"
    return f"<?xml version='1.0'?>{head}{''.join(servers)}</emailProvider></clientConfig>".encode()


class ReadingTests(SynchronousTestCase):
    """Sound documents."""

    def test_both_servers(self) -> None:
        """Names, ports, TLS, user names and secrets as they are told; placeholders of the host filled in."""
        offer = read(document(IMAP, SMTP), "example.org", "https://x")
        kinds = (SecretKind.OAUTH, SecretKind.PASSWORD)
        self.assertEqual(offer.imap, Server("imap.example.org", 993, False, "%EMAILADDRESS%", kinds))
        self.assertEqual(offer.smtp, Server("smtp.example.net", 587, True, "%EMAILLOCALPART%"))
        self.assertEqual((offer.name, offer.source), ("Example Mail", "https://x"))

    def test_implicit_tls_goes_before_starttls(self) -> None:
        """Wherever it stands; else the order of the document counts."""
        second = SMTP.replace("587", "465").replace("STARTTLS", "SSL")
        offer = read(document(IMAP, SMTP, second), "example.org", "x")
        self.assertEqual(offer.smtp and (offer.smtp.port, offer.smtp.starttls), (465, False))

    def test_pop_and_unknown_logins_are_left_out(self) -> None:
        """A server that wants a certificate or Kerberos is of no use."""
        pop = IMAP.replace('type="imap"', 'type="pop3"').replace("imap.", "pop.")
        kerberos = SMTP.replace("</username>", "</username><authentication>GSSAPI</authentication>")
        offer = read(document(pop, IMAP, kerberos), "example.org", "x")
        self.assertIsNone(offer.smtp)
        self.assertEqual(offer.imap and offer.imap.host, "imap.example.org")


class HostileTests(SynchronousTestCase):
    """Documents that must not be believed."""

    def refused(self, data: bytes, kind: type[PeerError] = ProtocolViolation) -> str:
        """Why it is refused."""
        return str(self.assertRaises(kind, read, data, "example.org", "x"))

    def test_entities(self) -> None:
        """A bomb, an outer file and a plain document type are refused before anything is expanded."""
        bomb = '<!ENTITY a "aaaaaaaaaa">' + "".join(
            f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12)
        )
        for kind in (bomb, '<!ENTITY a SYSTEM "file:///etc/passwd">', ""):
            data = f"<?xml version='1.0'?><!DOCTYPE clientConfig [{kind}]><clientConfig>&m;</clientConfig>"
            self.assertIn("document type", self.refused(data.encode()))
            self.assertIn(
                "document type", self.refused(data.replace("?>", " encoding='utf-16'?>", 1).encode("utf-16"))
            )

    def test_without_tls(self) -> None:
        """It does not count, with whatever words."""
        for word in ("plain", "none", "", "ssl "):
            told = IMAP.replace("<socketType>SSL", f"<socketType>{word}")
            if word == "ssl ":
                told = told.replace("ssl ", "TLS?")
            self.assertIn("without TLS", self.refused(document(told, SMTP), TlsRefused))

    def test_places_that_are_no_public_hosts(self) -> None:
        """Address literals and local names would turn us against machines that only we reach."""
        for host in (
            "127.0.0.1",
            "[::1]",
            "localhost",
            "imap.localhost",
            "router.local",
            "a b.example",
            "imap",
            "",
        ):
            self.refused(document(IMAP.replace("imap.%EMAILDOMAIN%", host), SMTP))
        for port in ("0", "65536", "-1", "", "99x", "٣"):
            self.refused(document(IMAP.replace("993", port), SMTP))

    def test_size_and_nonsense(self) -> None:
        """A megabyte, other XML, and what is no XML."""
        self.assertIn("64 KiB", self.refused(document(IMAP, " " * LARGEST)))
        for data in (b"", b"<", b"<html/>", b"<clientConfig/>", document(), b"\xff\xfe\x00", b"<a>" * 9000):
            self.refused(data)

    def test_words_that_steer_a_terminal(self) -> None:
        """A name with control characters is none."""
        self.refused(document(IMAP.replace("%EMAILADDRESS%", "a\u202eb"), SMTP))

    @given(st.binary(max_size=400))
    def test_anything(self, data: bytes) -> None:
        """Bytes of any kind, alone or in the midst of a document, are an offer or an error of the tree."""
        for whole in (data, document(IMAP)[:200] + data, document(data.decode("latin-1"), IMAP)):
            try:
                read(whole, "example.org", "x")
            except (ProtocolViolation, TlsRefused):
                continue
