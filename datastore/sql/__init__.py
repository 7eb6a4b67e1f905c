"""Stores in SQL: SQLite and PostgreSQL behind one schema and one set of statements.

``tables`` is the schema, ``migrations`` its history, ``link`` and ``dialects`` the
connections; ``log``, ``decisions``, ``sessions`` and ``projection`` each own some
tables; ``compile`` turns filters into expressions; ``store`` puts them together.
Statements are built with SQLAlchemy Core and compiled once; the driver runs them.
"""
