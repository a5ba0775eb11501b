"""The folders of an account, asked for on a live connection, as the rules about their purposes see them."""

from mailgateway.domain.special_use import Folder
from mailgateway.protocols.imap import ImapConnection
from mailgateway.wire.modified_utf7 import decode


async def folders_of(connection: ImapConnection) -> list[Folder]:
    """Every folder that the server lists; raises a ``PeerError`` when it does not."""
    return [
        Folder(
            each.name,
            decode(each.name),
            None if each.delimiter is None else each.delimiter.decode("utf-8", "replace"),
            each.attributes,
        )
        for each in await connection.list_folders()
    ]
