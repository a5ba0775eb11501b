"""Who this gateway is among all that share a database and a mailbox."""

from attrs import frozen

from mailgateway.ids import MachineId


@frozen
class Identity:
    """This gateway: ``machine_id`` says so for good, ``name`` is the label that people see today.

    ``instance`` is the random hex of the state directory, stable over restarts; it stands in the marker
    header of all mail that leaves.
    """

    machine_id: MachineId
    name: str
    instance: str
