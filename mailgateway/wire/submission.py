"""What is handed to a submission server: one mail and its envelope, before anybody connects."""

from attrs import field, frozen


@frozen
class Submission:
    """One mail to hand over.

    ``message`` holds the final bytes with CRLF line ends, exactly as they go out; ``sender`` is the envelope
    sender and ``recipients`` are the envelope recipients, as bare addresses.
    """

    sender: str
    recipients: tuple[str, ...]
    message: bytes = field(repr=False)
