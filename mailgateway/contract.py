"""What the service and its clients must agree on before they understand each other.

Both sides import it, and clients start often, so it holds nothing but a few words of the API and is not
among its shapes, whose classes take time to make.
"""

import hashlib
import hmac

API_VERSION = 1
"""Grows when a client of before would misunderstand; every request and answer carries it."""

LONGEST_WAIT = 60
"""Seconds that one request may wait for a delivery."""

FILES_OF_A_MAIL = 18_000_000
"""Octets of all files of one mail: encoded they stay below the 25 MB that providers take."""

MOST_FILES = 20
"""So many files go with one mail."""

_PROOF_PREFIX = b"mailgateway-health-1\0"


def proof_of(key: str, challenge: str) -> str:
    """What proves to a client that who answers holds the key: hex HMAC-SHA256 of its ASCII challenge."""
    return hmac.new(key.encode(), _PROOF_PREFIX + challenge.encode("ascii"), hashlib.sha256).hexdigest()
