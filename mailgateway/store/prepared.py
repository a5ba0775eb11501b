"""A statement that is built once with SQLAlchemy Core and executed often, straight on the driver's cursor.

Core is the one way to write SQL here.  What it does at each execution (looking the statement up, a context,
a result with its own metadata) costs ten times what SQLite needs for the statement, and these are the
statements of every mail and every claim.  So ``Prepared`` compiles once for each database and set of
parameters, with the types of the columns, and its results have the methods of Core's that we use.

What it does not do is not needed here: no streaming of rows over a transaction's end, no defaults that
Python makes.
"""

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from attrs import define, field, frozen
from sqlalchemy import BindParameter, Connection, Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.visitors import iterate
from sqlalchemy.types import TypeEngine

Convert = Callable[[Any], Any]
Parameters = Mapping[str, Any]


@frozen
class _Slot:
    """Stands for what the caller gives as ``name``: all of it, or one value of a list."""

    name: str
    index: int | None = None


@define(eq=False)
class Rows:
    """What a prepared statement gave, as tuples with names; its methods are those of ``CursorResult``."""

    _connection: Connection
    _cursor: Any
    _make: Convert
    """Makes the row of what the driver gave."""

    @property
    def rowcount(self) -> int:
        """How many rows were written."""
        return int(self._cursor.rowcount)

    def __iter__(self) -> Iterator[Any]:
        while True:
            try:
                found = self._cursor.fetchone()
            except self._connection.dialect.loaded_dbapi.Error as error:
                _failed(self._connection, "", error)
            if found is None:
                return
            yield self._make(found)

    def all(self) -> list[Any]:
        """Every row."""
        return list(self)

    def first(self) -> Any:
        """The first row, or ``None``."""
        found = next(iter(self), None)
        self._cursor.close()
        return found

    def one_or_none(self) -> Any:
        """The only row, or ``None``; two are a defect of the statement."""
        rows = self.all()
        assert len(rows) <= 1, "the statement names no unique key"  # noqa: S101 (a defect of ours, not of a row)
        return rows[0] if rows else None

    def scalar(self) -> Any:
        """The first column of the first row, or ``None``."""
        found = self.first()
        return None if found is None else found[0]

    def scalars(self) -> list[Any]:
        """The first column of every row."""
        return [row[0] for row in self]


@define(eq=False)
class _Plan:
    """A statement as one database has it, for one set of parameters."""

    sql: str
    names: tuple[str, ...] | None
    """For a driver that binds by name; ``None``: by position."""
    places: tuple[tuple[str | None, int | None, Any], ...]
    """For each place of the statement: the name and index of what the caller gives, and how it is converted;
    without a name the third is a value that always stands there."""
    make: Convert | None = None
    """Makes rows; known when the driver has said what the columns are."""

    def bound(self, parameters: Parameters) -> Any:
        """The parameters as the driver wants them."""
        found = []
        for name, index, convert in self.places:
            if name is None:
                found.append(convert)
                continue
            value = parameters[name]
            if index is not None:
                # there are places for a power of two: the last value stands also where there is none
                value = value[index] if index < len(value) else value[-1]
            found.append(value if convert is None else convert(value))
        return found if self.names is None else dict(zip(self.names, found, strict=True))


@define(eq=False)
class Prepared:
    """A statement to be executed often; hand it to ``Tx.execute``.

    An expanding parameter is given as a list.
    """

    _statement: Any
    _plans: dict[tuple[Any, ...], _Plan] = field(factory=dict, init=False)
    _lists: tuple[str, ...] | None = field(default=None, init=False)
    """The names of expanding parameters, looked for when they are first asked for."""

    def execute(self, connection: Connection, parameters: Any) -> Rows:
        """Execute it, with a list of parameters once for each (all naming the same ones)."""
        several = parameters if isinstance(parameters, list) else None
        first = several[0] if several else parameters or {}
        plan = self._plan(connection.dialect, first)
        if several is None:
            cursor = _executed(connection, plan.sql, plan.bound(first))
        else:
            cursor = _executed(connection, plan.sql, [plan.bound(each) for each in several], many=True)
        if plan.make is None:
            plan.make = _row(self._statement, connection.dialect, cursor.description)
        return Rows(connection, cursor, plan.make)

    def _plan(self, dialect: Dialect, parameters: Parameters) -> _Plan:
        if self._lists is None:
            self._lists = tuple(
                element.key
                for element in iterate(self._statement)
                if isinstance(element, BindParameter) and element.expanding and element.required
            )
        lengths = [_power(len(parameters[name])) for name in self._lists]
        key = (dialect.name, *parameters, *lengths)
        found = self._plans.get(key)
        if found is None:
            lists = dict(zip(self._lists, lengths, strict=True))
            found = self._plans[key] = _compiled(self._statement, dialect, tuple(parameters), lists)
        return found


def command(connection: Connection, sql: str) -> None:
    """Execute what takes no parameters and gives no rows, such as ``SAVEPOINT``."""
    _executed(connection, sql, ()).close()


def _executed(connection: Connection, sql: str, bound: Any, *, many: bool = False) -> Any:
    """The driver's cursor after it has executed this; raises what Core raises."""
    cursor = connection.connection.cursor()
    try:
        (cursor.executemany if many else cursor.execute)(sql, bound)
    except connection.dialect.loaded_dbapi.Error as error:
        _failed(connection, sql, error)
    return cursor


def _power(length: int) -> int:
    """The smallest power of two that is not smaller; 0 stays 0."""
    return 1 << (length - 1).bit_length() if length else 0


def _compiled(
    statement: Any, dialect: Dialect, parameters: tuple[str, ...], lists: Mapping[str, int]
) -> _Plan:
    slots = {
        name: [_Slot(name, index) for index in range(lists[name])] if name in lists else _Slot(name)
        for name in parameters
    }
    keys = parameters if isinstance(statement, UpdateBase) else None
    compiled = statement.compile(dialect=dialect, column_keys=keys)
    state = compiled.construct_expanded_state(slots)
    names = tuple(state.parameters if state.positiontup is None else state.positiontup)
    places: list[tuple[str | None, int | None, Any]] = []
    for name in names:
        value = state.parameters[name]
        bind = compiled.binds.get(name)  # one of a list has none, but may have what converts it
        convert = state.processors.get(name) if bind is None else _bind(bind.type, dialect)
        if isinstance(value, _Slot):
            places.append((value.name, value.index, convert))
        else:
            places.append((None, None, value if convert is None else convert(value)))
    return _Plan(
        state.statement,
        names if state.positiontup is None else None,
        tuple(places),
    )


def _bind(of: TypeEngine[Any], dialect: Dialect) -> Convert | None:
    return of.dialect_impl(dialect).bind_processor(dialect)


def _row(statement: Any, dialect: Dialect, description: Sequence[Any] | None) -> Convert:
    """What makes a row, with the names and types of the statement's columns, of the driver's tuple."""
    if description is None:
        return tuple
    columns = tuple(statement.exported_columns)
    row = namedtuple("row", [column.key for column in columns], rename=True)  # type: ignore[misc]  # noqa: PYI024 (of what a statement asks for)
    converts = [
        (index, convert)
        for index, (column, told) in enumerate(zip(columns, description, strict=True))
        if (convert := column.type.dialect_impl(dialect).result_processor(dialect, told[1])) is not None
    ]

    def make(found: Sequence[Any]) -> Any:
        values = list(found)
        for index, convert in converts:
            values[index] = convert(values[index])
        return row._make(values)

    return make if converts else row._make


def _failed(connection: Connection, sql: str, error: Exception) -> NoReturn:
    """Raise what Core raises for an error of the driver; a connection that is gone is not used again."""
    dialect = connection.dialect
    lost = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)  # type: ignore[arg-type]  # a driver's errors share no class
    if lost:
        connection.invalidate(error)
    raise DBAPIError.instance(
        sql,
        None,
        error,
        dialect.loaded_dbapi.Error,
        hide_parameters=True,
        connection_invalidated=lost,
        dialect=dialect,
    ) from error
