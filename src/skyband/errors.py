"""What can go wrong, by whose hand it can be put right."""


class SkybandError(Exception):
    """Base of every error skyband raises on purpose."""


class QueryError(SkybandError, ValueError):
    """A question that cannot be asked: fix the query."""


class SchemaError(SkybandError, ValueError):
    """Rows that do not fit the stream or the query: fix the batch."""


class StateError(SkybandError, RuntimeError):
    """A state that cannot be used: a foreign or damaged file, or a call at the wrong moment."""
