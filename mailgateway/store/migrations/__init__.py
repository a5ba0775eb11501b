"""The history of the tables, run by alembic; ``store.upgrade`` says when."""
