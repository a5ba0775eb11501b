"""Finding the folders of a purpose in a list."""

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.special_use import Folder, find_junk, find_sent
from mailgateway.providers import folder_names

NAMES = folder_names()


def folder(name: str, *attributes: bytes, delimiter: str | None = "/", raw: bytes = b"") -> Folder:
    """A folder of a list."""
    return Folder(raw or name.encode(), name, delimiter, frozenset(attributes))


class SentTests(SynchronousTestCase):
    """The folder with what was sent."""

    def find(self, *folders: Folder, wanted: str = "") -> bytes | None:
        """Look."""
        return find_sent(folders, wanted, NAMES.sent)

    def test_the_mark_wins_over_the_name(self) -> None:
        """A server knows its own folders."""
        self.assertEqual(self.find(folder("Sent"), folder("Abgeschickt", b"\\sent")), b"Abgeschickt")

    def test_the_upper_one_of_several(self) -> None:
        """Marked or named."""
        marked = (folder("A/Sent", b"\\sent"), folder("Z", b"\\sent"))
        self.assertEqual(self.find(*marked), b"Z")
        self.assertEqual(self.find(folder("INBOX/Sent"), folder("Sent")), b"Sent")

    def test_what_others_share_is_theirs(self) -> None:
        """Somebody at the same server may call a folder so, and mark it, and share it."""
        for root in ("shared/eve", "Other Users/eve", "user/eve", "Public Folders"):
            theirs = folder(f"{root}/Sent", b"\\sent")
            self.assertEqual(self.find(theirs, folder("Sent")), b"Sent", root)
            self.assertIsNone(self.find(theirs), root)
            self.assertEqual(self.find(theirs, wanted=f"{root}/Sent"), theirs.raw, root)

    def test_the_usual_name_first(self) -> None:
        """By the order of the table."""
        self.assertEqual(self.find(folder("Gesendet"), folder("Sent Items"), folder("Sent")), b"Sent")

    def test_names_in_any_case_and_language(self) -> None:
        """As people read them."""
        for name in (
            "SENT",
            "Éléments envoyés",
            "E\u0301le\u0301ments envoye\u0301s",
            "已发送",
            "Отправленные",
        ):
            self.assertEqual(self.find(folder(name, raw=b"raw")), b"raw", name)

    def test_a_deep_one_is_another(self) -> None:
        """An archive has its own; with a flat name nothing is deep."""
        self.assertIsNone(self.find(folder("Archive/Sent")))
        self.assertIsNone(self.find(folder("INBOX/Old/Sent")))
        self.assertEqual(self.find(folder("[Gmail]/Sent Mail")), b"[Gmail]/Sent Mail")
        self.assertIsNone(self.find(folder("INBOX/Sent", delimiter=None)))

    def test_what_cannot_be_selected_is_none(self) -> None:
        """Nor what does not exist."""
        self.assertIsNone(self.find(folder("Sent", b"\\noselect"), folder("X", b"\\sent", b"\\nonexistent")))

    def test_the_setting_wins(self) -> None:
        """And is not replaced."""
        folders = (folder("Sent", b"\\sent"), folder("Ablage", raw=b"Abl&-age"))
        self.assertEqual(self.find(*folders, wanted="Ablage"), b"Abl&-age")
        self.assertEqual(self.find(*folders, wanted="Abl&-age"), b"Abl&-age")
        self.assertIsNone(self.find(*folders, wanted="Nowhere"))


class JunkTests(SynchronousTestCase):
    """The folder with what was taken for junk."""

    def test_mark_and_name(self) -> None:
        """Of RFC 6154, of XLIST, or by name."""
        for each in (folder("Müll", b"\\junk"), folder("Müll", b"\\spam"), folder("Spamverdacht")):
            self.assertEqual(find_junk([folder("INBOX"), each], NAMES.junk), each.raw)
        self.assertIsNone(find_junk([folder("INBOX"), folder("Trash", b"\\trash")], NAMES.junk))
