"""A certificate authority for tests, and one server certificate for the loopback interface."""

from pathlib import Path

import trustme
from attrs import field, frozen


@frozen
class Authority:
    """Files in PEM form: the anchor to trust, and what a server on 127.0.0.1 or localhost presents."""

    anchor: Path
    certificate: Path
    key: Path = field(repr=False)

    @classmethod
    def make(cls, folder: Path, *names: str) -> "Authority":
        """Make both in ``folder``; other ``names`` give a certificate that does not fit the host."""
        folder.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA()
        issued = authority.issue_cert(*(names or ("localhost", "127.0.0.1")))
        made = cls(folder / "authority.pem", folder / "server.pem", folder / "server.key")
        authority.cert_pem.write_to_path(made.anchor)
        for number, part in enumerate(issued.cert_chain_pems):
            part.write_to_path(made.certificate, append=number > 0)
        issued.private_key_pem.write_to_path(made.key)
        made.key.chmod(0o644)  # servers that run as another user must read it; it is worth nothing
        return made
