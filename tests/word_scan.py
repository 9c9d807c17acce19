"""Looks for words in every column of every table of a database, whatever tables there are."""

import psycopg
from psycopg import sql

_TABLES = """
SELECT nspname, relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'm', 'f', 't') AND nspname NOT LIKE 'pg_temp%'
  AND (nspname NOT IN ('pg_catalog', 'information_schema') OR relname IN (
      'pg_statistic', 'pg_statistic_ext_data', 'pg_largeobject', 'pg_description'))
ORDER BY 1, 2
"""
_COLUMNS = """
SELECT attname, atttypid::regtype::text FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
"""


def tables_with(address, word):
    """The tables, and columns of them, that have the word in a row that can be read.

    Values are compared as text, and bytes as bytes: texts are packed in some of them.
    """
    found = []
    with psycopg.connect(address, autocommit=True) as db:
        tables = [one for one in db.execute(_TABLES).fetchall() if one[0] != "pg_toast"]
        assert len(tables) > 10
        for schema, table in tables:
            name = sql.Identifier(schema, table)
            for column, kind in db.execute(_COLUMNS, [name.as_string(db)]).fetchall():
                value = sql.Identifier(column)
                test = sql.SQL("strpos({value}::text, {word}) > 0")
                if kind == "bytea":
                    test = sql.SQL("position({word}::bytea IN {value}) > 0")
                elif kind == "bytea[]":
                    test = sql.SQL(
                        "position({word}::bytea IN array_to_string({value}, '')::bytea) > 0"
                    )
                where = test.format(value=value, word=sql.Literal(word))
                query = sql.SQL("SELECT count(*) FROM {name} WHERE {where}").format(
                    name=name, where=where
                )
                if db.execute(query).fetchone()[0]:
                    found.append(f"{schema}.{table}.{column}")
    return found


def words_in_database(address, words):
    """Which of the words any table has."""
    return {word for word in words if tables_with(address, word)}
