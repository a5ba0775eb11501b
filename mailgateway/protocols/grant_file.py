"""What a person has granted, on disk: ``oauth/NAME.json`` in the state directory, for us alone.

Policy: a file is written beside and moved into place, all of it on disk before anybody uses what is in it;
whenever a process dies, the file is the old one or the new one.  One process at a time changes it: the lock
is the kernel's and is let go when its holder dies.  A grant is bound to the registration it was given to
(client id, token address, scopes); when those change, it speaks for nothing any more.

Neither the network nor what an answer means is known here.
"""

import fcntl
import hashlib
import json
import os
import pwd
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen
from twisted.internet.task import deferLater

from mailgateway.errors import ConfigError, Problem, TokenUnavailable
from mailgateway.secrets import SESSION_KEY
from mailgateway.settings import OAuth

FOLDER: Final = "oauth"
VERSION: Final = 1
LARGEST: Final = 256 * 1024

LEAST_MARGIN: Final = timedelta(minutes=5)
MARGIN_SHARE: Final = 10
"""An access token is renewed when less than five minutes, or a tenth of its life, are left."""

SET_BACK: Final = timedelta(minutes=1)
"""A token that was issued so long from now was issued by another clock: its end is not believed."""

LOCK_SECONDS: Final = 60.0
LOCK_PAUSE: Final = 0.1


@frozen
class Grant:
    """What a person has granted, and the access token of the moment.

    ``identity`` is another one after each signing in, and the same after each renewal.  ``lost`` is the code
    by which the provider has said that the refresh token is worth nothing any more.
    """

    identity: str
    binding: str
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    signed_in_at: datetime
    issued_at: datetime
    expires_at: datetime
    scopes: tuple[str, ...] = ()
    lost: str = ""

    def due(self, now: datetime) -> bool:
        """Whether another access token is to be asked for; of a short life half is used at least."""
        lifetime = self.expires_at - self.issued_at
        margin = min(max(LEAST_MARGIN, lifetime / MARGIN_SHARE), lifetime / 2)
        return self.expires_at - now < margin or now < self.issued_at - SET_BACK

    def alive(self, now: datetime, least: timedelta = timedelta(0)) -> bool:
        """Whether the access token is good for at least so long, as far as anybody can tell."""
        return self.issued_at - SET_BACK <= now < self.expires_at - least


def binding_of(registration: OAuth) -> str:
    """What a grant is bound to, as a digest."""
    parts = [registration.client_id, registration.token_url, *sorted(registration.scopes)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


@define(eq=False)
class GrantFile:
    """The file of one name; ``ConfigError`` tells what is wrong with it, and never what is in it."""

    folder: Path
    name: str

    @classmethod
    def of(cls, state_dir: Path, name: str) -> "GrantFile":
        """The file of a registration; nothing is made yet."""
        return cls(state_dir / FOLDER, name)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.folder / f"{self.name}.json"

    def read(self) -> Grant | None:
        """What is granted; ``None`` where nobody has signed in."""
        try:
            with self.path.open("rb") as stream:
                data = stream.read(LARGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._problem(f"cannot be read: {error.strerror}") from None
        try:
            return _grant(json.loads(data))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise self._problem(f"is damaged; sign in again with `mailgateway auth {self.name}`") from None

    def write(self, grant: Grant) -> None:
        """Replace the file; when this returns, it is on disk."""
        self._prepare()
        draft = self.path.with_name(f".{self.name}.{os.urandom(6).hex()}")
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(json.dumps(_facts(grant), indent=1).encode())
                    stream.flush()
                    os.fsync(stream.fileno())
                draft.replace(self.path)
            except OSError:
                draft.unlink(missing_ok=True)
                raise
            self._sync_folder()
        except OSError as error:
            raise self._problem(f"cannot be written: {error.strerror}") from None

    def forget(self) -> bool:
        """Remove it, and whatever a process that died has left beside it; whether it was there."""
        try:
            there = self.path.exists()
            for left in (self.path, *self.folder.glob(f".{self.name}.*")):
                left.unlink(missing_ok=True)
            if there:
                self._sync_folder()
        except OSError as error:
            raise self._problem(f"cannot be removed: {error.strerror}") from None
        return there

    def ready(self) -> None:
        """Make the folder; ``ConfigError`` when nothing could be written into it."""
        self._prepare()
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise self._problem("cannot be written: its folder belongs to another user")

    async def lock(self, reactor: Any, seconds: float = LOCK_SECONDS) -> "Lock":
        """Be the one that changes it; ``TokenUnavailable`` when another process takes too long."""
        self._prepare()
        try:
            handle = os.open(self.folder / f"{self.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._problem(f"cannot be locked: {error.strerror}") from None
        lock = Lock(handle)
        until = reactor.seconds() + seconds
        try:
            while not lock.take():
                if reactor.seconds() >= until:
                    raise TokenUnavailable(
                        f"another process is renewing the tokens of {self.name} for too long"
                    )
                await deferLater(reactor, LOCK_PAUSE)
        except BaseException:
            lock.release()
            raise
        return lock

    def _prepare(self) -> None:
        try:
            self._look_whose()
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.folder.stat().st_mode & 0o077:
                self.folder.chmod(0o700)
        except OSError as error:
            raise self._problem(f"has no folder: {error.strerror}") from None

    def _look_whose(self) -> None:
        """Root writes nothing for a service that runs as another user, who could not read it."""
        if os.geteuid() != 0:
            return
        with suppress(FileNotFoundError):
            owner = (self.folder.parent / SESSION_KEY).lstat().st_uid
            if owner != 0:
                raise self._problem(
                    f"is for the user whose service keeps its state there ({_user(owner)}); "
                    f"run this as that user: sudo -u {_user(owner)}"
                )

    def _sync_folder(self) -> None:
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _problem(self, message: str) -> ConfigError:
        return ConfigError([Problem(f"oauth.{self.name}", f"{self.path} {message}")])


@define(eq=False)
class Lock:
    """The lock of one file, held as long as this object's own file is open."""

    _handle: int

    def take(self) -> bool:
        """Try to get it."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise TokenUnavailable(f"a file of tokens cannot be locked: {error.strerror}") from None
        return True

    def release(self) -> None:
        """Give it back, once; its file stays, since removing it would let two hold it."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"#{number}"


def _facts(grant: Grant) -> Mapping[str, Any]:
    return {
        "version": VERSION,
        "identity": grant.identity,
        "binding": grant.binding,
        "signedInAt": grant.signed_in_at.isoformat(),
        "issuedAt": grant.issued_at.isoformat(),
        "expiresAt": grant.expires_at.isoformat(),
        "scopes": list(grant.scopes),
        "lost": grant.lost,
        "refreshToken": grant.refresh_token,
        "accessToken": grant.access_token,
    }


def _grant(facts: Mapping[str, Any]) -> Grant:
    """Read what ``_facts`` wrote; ``ValueError`` or its like for anything else."""
    if facts["version"] != VERSION:
        raise ValueError
    texts = {key: facts[key] for key in ("identity", "binding", "lost", "refreshToken", "accessToken")}
    if not all(isinstance(each, str) for each in (*texts.values(), *facts["scopes"])):
        raise TypeError
    signed_in_at, issued_at, expires_at = (
        datetime.fromisoformat(facts[key]).astimezone(UTC) for key in ("signedInAt", "issuedAt", "expiresAt")
    )
    return Grant(
        texts["identity"],
        texts["binding"],
        texts["accessToken"],
        texts["refreshToken"],
        signed_in_at,
        issued_at,
        expires_at,
        tuple(facts["scopes"]),
        texts["lost"],
    )
