"""Which files of a mail are kept, under which names, and what is said of the others."""

import struct
from collections.abc import Sequence
from email.encoders import encode_base64
from email.message import EmailMessage
from email.mime.base import MIMEBase
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from time import process_time

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.attachments import KEPT_LIMIT, NAMED_LIMIT, Part, Reason, attachments_of
from mailgateway.mail.decode import Malformed
from mailgateway.mail.inbound import read
from mailgateway.mail.own import Own
from tests.mail.test_tnef import packed, stream

OWN = Own(addresses=["agent@example.org"], allowed=["robin@example.net"])
SENT = "Which database?\n\nSQLite or PostgreSQL?\n"


def png(width: int = 400, height: int = 300) -> bytes:
    """The beginning of a PNG of some size."""
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\2\0\0\0" + b"x" * 200


def file(
    data: bytes,
    name: str = "",
    content_type: str = "application/octet-stream",
    disposition: str = "attachment",
    cid: str = "",
) -> MIMEBase:
    """One part that is a file."""
    main, _, sub = content_type.partition("/")
    part = MIMEBase(main, sub)
    part.set_payload(data)
    encode_base64(part)
    if disposition:
        part["Content-Disposition"] = disposition
        if name:
            part.set_param("filename", name, header="Content-Disposition")
    if cid:
        part["Content-ID"] = f"<{cid}>"
    return part


def mail(*parts: MIMEBase, text: str = "see there", html: str = "") -> bytes:
    """A mail with these parts."""
    whole = MIMEMultipart("related" if html else "mixed")
    whole["From"] = "robin@example.net"
    whole["Subject"] = "Re: Which database?"
    whole.attach(MIMEText(html, "html") if html else MIMEText(text))
    for part in parts:
        whole.attach(part)
    return whole.as_bytes()


def found_in(raw: bytes, sent_text: str | None = SENT) -> Sequence[Part]:
    """What is found in a mail."""
    inbound = read(raw)
    assert not isinstance(inbound, Malformed)
    return attachments_of(inbound, OWN, sent_text)


def names(parts: Sequence[Part], reason: Reason | None = None) -> list[str]:
    """The names of those with a reason; of those that are kept without one."""
    return [part.filename for part in parts if part.left_out is reason]


class KeptTests(SynchronousTestCase):
    """What an agent can use."""

    def test_what_people_send(self) -> None:
        """Pictures, documents, text, patches, scripts, whatever their disposition."""
        parts = found_in(
            mail(
                file(png(), "shot.png", "image/png"),
                file(png(), "photo.png", "image/png", "inline"),
                file(b"%PDF", "spec.pdf", "application/pdf"),
                file(b"--- a\n+++ b\n", "fix.patch", "text/x-patch", "inline"),
                file(b"# notes", "notes.md", "text/markdown"),
                file(b"echo hi", "deploy.sh", "application/x-sh"),
            )
        )
        kept = ["shot.png", "photo.png", "spec.pdf", "fix.patch", "notes.md", "deploy.sh"]
        self.assertEqual(names(parts), kept)
        self.assertEqual(parts[3].data.replace(b"\r\n", b"\n").strip(), b"--- a\n+++ b")

    def test_an_enclosed_mail(self) -> None:
        """One file, named by its subject, for a mail program; its words and files are not the carrier's."""
        inner = EmailMessage()
        inner["Subject"] = "Re/Fwd: a \u00fcbersicht"
        inner.set_content("inner words")
        inner.add_attachment(b"MZ", maintype="application", subtype="octet-stream", filename="a.exe")
        [part] = found_in(mail(MIMEMessage(inner)))
        self.assertEqual(
            (part.filename, part.content_type), ("Re_Fwd_ a \u00fcbersicht.eml", "message/rfc822")
        )
        self.assertIn(b"inner words", part.data)

    def test_winmail(self) -> None:
        """Unpacked; one that cannot be read is kept as it came, one without files is nothing."""
        raw = stream(packed("a.txt", b"words", "long name.txt"), packed("setup.exe", b"MZ"))
        parts = found_in(mail(file(raw, "winmail.dat", "application/ms-tnef")))
        self.assertEqual((names(parts), names(parts, Reason.PROGRAM)), (["long name.txt"], ["setup.exe"]))
        broken = found_in(mail(file(raw[:60], "winmail.dat", "application/ms-tnef")))
        self.assertEqual(names(broken), ["winmail.dat"])
        self.assertEqual(found_in(mail(file(stream(), "winmail.dat", "application/ms-tnef"))), ())

    def test_names(self) -> None:
        """No path, no control characters, no two alike."""
        parts = found_in(
            mail(
                file(b"1", "../../etc/passwd"),
                file(b"2", "C:\\\\Users\\\\passwd"),
                file(b"3", "PASSWD"),
                file(b"4", "a\u202egnp.exe.txt"),
                file(b"5"),
            )
        )
        found = names(parts)
        self.assertEqual(found[:3], ["passwd", "passwd (2)", "PASSWD (3)"])
        self.assertNotIn("\u202e", found[3])
        self.assertEqual(len(set(found)), 5)

    def test_many_of_one_name(self) -> None:
        """They cost no more than as many of other names: a try for each, and not for each before it."""
        winmail = stream(*[packed("x", b"x")] * 100)
        whole = mail(*[file(winmail, "winmail.dat", "application/ms-tnef")] * 200)
        before = process_time()
        parts = found_in(whole)
        self.assertEqual(parts[99].filename, "x (100)")
        self.assertLess(process_time() - before, 5)


class LeftOutTests(SynchronousTestCase):
    """What is named and not kept."""

    def test_beyond_the_bound(self) -> None:
        """The thirty-first is named, up to a bound; what is kept comes first."""
        parts = found_in(mail(*(file(b"x", f"{number}.txt") for number in range(KEPT_LIMIT + 5))))
        self.assertEqual(len(names(parts)), KEPT_LIMIT)
        self.assertEqual(len(names(parts, Reason.TOO_MANY)), 5)
        many = found_in(mail(*(file(b"x", f"{number}.txt") for number in range(NAMED_LIMIT + 50))))
        self.assertEqual((len(many), len(names(many))), (NAMED_LIMIT, KEPT_LIMIT))

    def test_programs(self) -> None:
        """By their name, and by how they begin."""
        programs = [file(b"x", "setup.EXE"), file(b"\x7fELF\2", "notes.txt"), file(b"x", "app.apk")]
        self.assertEqual(len(names(found_in(mail(*programs)), Reason.PROGRAM)), 3)

    def test_the_look_of_a_mail(self) -> None:
        """Images of the quotation and the signature are left out; the one between the words is kept."""
        html = (
            '<div>it looks like this: <img src="cid:shot@x" width="400"></div><div>please mend it</div>'
            "<div>-- <br>Robin<br><img src='cid:logo@x'></div>"
            '<div class="gmail_quote">On Mon, Nov 30, 2026, Coding agents wrote:<br><blockquote type="cite">'
            '<img alt="banner" src="cid:banner@x"> SQLite or PostgreSQL?</blockquote></div>'
        )
        images = [
            file(png(), f"{name}.png", "image/png", "inline", f"{name}@x")
            for name in ("shot", "logo", "banner")
        ]
        parts = found_in(mail(*images, html=html))
        self.assertEqual(names(parts), ["shot.png"])
        self.assertEqual(names(parts, Reason.DECORATION), ["logo.png", "banner.png"])

    def test_tiny_images(self) -> None:
        """Pixels that count who reads, and signs of networks."""
        gif = b"GIF89a" + struct.pack("<HH", 1, 1) + b"\0" * 30
        jpeg = (
            b"\xff\xd8\xff\xe0\0\x10JFIF"
            + b"\0" * 10
            + b"\xff\xc0\0\x11\x08"
            + struct.pack(">HH", 24, 24)
            + b"\3"
        )
        small = [
            file(gif, "a.gif", "image/gif"),
            file(jpeg + b"\0" * 40, "b.jpg", "image/jpeg"),
            file(png(24, 24), "c.png", "image/png"),
        ]
        self.assertEqual(len(names(found_in(mail(*small)), Reason.DECORATION)), 3)
        self.assertEqual(
            names(found_in(mail(file(b"\xff\xd8\xff\xe0\0\0", "odd.jpg", "image/jpeg")))), ["odd.jpg"]
        )

    def test_an_image_that_nothing_shows(self) -> None:
        """A phone's photo has an id and no HTML: it is what the person wanted to send."""
        parts = found_in(mail(file(png(), "IMG_1.png", "image/png", "inline", "photo@x")))
        self.assertEqual(names(parts), ["IMG_1.png"])

    def test_an_image_alone(self) -> None:
        """HTML that holds nothing but the picture."""
        html = '<div><img src="cid:photo@x"></div>'
        parts = found_in(mail(file(png(), "IMG_1.png", "image/png", "inline", "photo@x"), html=html))
        self.assertEqual(names(parts), ["IMG_1.png"])
