"""What alembic executes: the migrations on the connection, and in the transaction, that we were given."""

from alembic import context

from mailgateway.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
