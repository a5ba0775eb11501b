"""What the gateway knows about itself, as it is compared."""

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.own import Own, normalise_address


class OwnTests(SynchronousTestCase):
    """The forms in which addresses and tags are kept."""

    def test_addresses_are_compared_by_a_labels_in_lower_case(self) -> None:
        """Domains only: whose mailbox a local part names is the receiving server's affair."""
        for text, wanted in {
            "Robin@Example.ORG": "Robin@example.org",
            " robin@exämple.org ": "robin@xn--exmple-cua.org",
            "robin@" + "ä" * 80 + ".org": "robin@" + "ä" * 80 + ".org",
            "robin": "robin",
        }.items():
            self.assertEqual(normalise_address(text), wanted)

    def test_settings_are_taken_in_any_case(self) -> None:
        """Tags and server ids are compared in lower case."""
        own = Own(accepted_tags=["MG"], trusted_authserv_ids=["MX.Example.net"], allowed=["A@B.Example"])
        self.assertEqual(
            (own.accepted_tags, own.trusted_authserv_ids, own.allowed),
            ({"mg"}, {"mx.example.net"}, {"A@b.example"}),
        )
