"""Runs a command behind the restrictions of a systemd unit, without systemd: for a test, as root.

    python confine.py UNIT FOLDER TOP -- COMMAND...

What the kernel does for systemd is asked of the kernel here: a mount namespace in which everything is
read-only but FOLDER, with a /tmp and a /dev of its own; namespaces of IPC and host name; no capabilities, no
new privileges; no memory that can be written and executed; the system calls and address families that the
unit names, and no others.  TOP, where the code is, stays readable.  Everything is read from the unit, so a
unit that takes away too much fails the test.
"""

import ctypes
import os
import stat
import subprocess
import sys
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_SET_MDWE, _PR_SET_SECUREBITS = 24, 38, 65, 28
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_ENOSYS = 38
_EQUAL, _MASKED = 4, 7
_FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}
_NAMESPACES = 0x7E020080
"""All CLONE_NEW flags (clone(2))."""


class _Compare(ctypes.Structure):
    """``struct scmp_arg_cmp`` of libseccomp."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


def main() -> None:
    """Close everything, then become the command."""
    unit, folder, top = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    said = _read(unit)
    names = _calls(said["SystemCallFilter"])  # asked of a program, hence first
    _close_files(folder, top)
    os.chdir(folder)
    _drop_capabilities()
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if said.get("MemoryDenyWriteExecute") == ["yes"]:
        _prctl(_PR_SET_MDWE, 1)
    _filter_calls(names, " ".join(said["RestrictAddressFamilies"]).split())
    os.execvp(sys.argv[5], sys.argv[5:])  # noqa: S606 (that is what it is for)


def _read(unit: Path) -> dict[str, list[str]]:
    """What the unit says; a key may be said more than once."""
    said: dict[str, list[str]] = {}
    for line in unit.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            said.setdefault(name, []).append(value)
    return said


def _calls(lines: list[str]) -> set[str]:
    """The system calls that the lines of ``SystemCallFilter=`` leave; a tilde takes all of its line away."""
    allowed: set[str] = set()
    for line in lines:
        named = set().union(*(_expand(name) for name in line.lstrip("~").split()))
        allowed = allowed - named if line.startswith("~") else allowed | named
    return allowed


def _expand(name: str) -> set[str]:
    if not name.startswith("@"):
        return {name}
    told = subprocess.run(
        ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
    )
    lines = [line.strip() for line in told.stdout.splitlines()[1:]]
    members = [line for line in lines if line and not line.startswith("#")]
    return set().union(*(_expand(each) for each in members)) if members else set()


def _close_files(folder: Path, top: Path) -> None:
    _check(_LIBC.unshare(0x00020000 | 0x08000000 | 0x04000000), "unshare")  # mount, IPC, host name
    _mount("--make-rprivate", "/")
    kept = [(path, os.open(path, os.O_PATH)) for path in (top, folder)]
    _mount("-t", "tmpfs", "-o", "mode=1777,nosuid,nodev", "tmpfs", "/tmp")
    _mount("-t", "tmpfs", "-o", "mode=755,nosuid", "tmpfs", "/dev")
    for name, numbers in {"null": (1, 3), "zero": (1, 5), "random": (1, 8), "urandom": (1, 9)}.items():
        os.mknod(f"/dev/{name}", 0o666 | stat.S_IFCHR, os.makedev(*numbers))
        Path(f"/dev/{name}").chmod(0o666)
    _mount("-o", "remount,bind,ro", "/")
    for path, descriptor in kept:
        path.mkdir(parents=True, exist_ok=True)
        _mount("--no-canonicalize", "--bind", f"/proc/{os.getpid()}/fd/{descriptor}", str(path))
        os.close(descriptor)
    _mount("-o", "remount,bind,ro", str(top))
    _mount("-o", "remount,bind,rw", str(folder))
    _mount("-o", "remount,ro,nosuid", "/dev")


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _drop_capabilities() -> None:
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for number in range(last + 1):
        _prctl(_PR_CAPBSET_DROP, number)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    none = (ctypes.c_uint32 * 6)()
    _prctl(_PR_SET_SECUREBITS, 0x2F)  # root's number gives nothing back, not over exec either
    _check(_LIBC.capset(header, none), "capset")


def _filter_calls(names: set[str], families: list[str]) -> None:
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(_ERRNO | 1))  # EPERM, as the unit says

    def allow(name: str, *compared: _Compare, action: int = _ALLOW) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # of this machine
            array = (_Compare * len(compared))(*compared)
            _check(library.seccomp_rule_add_array(context, action, number, len(compared), array), name)

    for name in sorted(names - {"socket", "clone", "clone3", "unshare", "setns"}):
        allow(name)
    for family in families:
        allow("socket", _Compare(0, _EQUAL, _FAMILIES[family], 0))
    allow("clone", _Compare(0, _MASKED, _NAMESPACES, 0))
    allow(
        "clone3", action=_ERRNO | _ENOSYS
    )  # its flags cannot be looked at; the C library goes on with clone
    _check(library.seccomp_load(context), "seccomp_load")


def _prctl(option: int, value: int) -> None:
    _check(_LIBC.prctl(option, value, 0, 0, 0), f"prctl {option}")


def _check(result: int, what: str) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), what)


if __name__ == "__main__":
    main()
