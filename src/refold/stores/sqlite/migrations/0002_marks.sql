-- Keys by which entries are found again. The newest mark has the largest id.
CREATE TABLE marks (
    id    INTEGER PRIMARY KEY,
    place INTEGER NOT NULL UNIQUE,
    key   BLOB NOT NULL
) STRICT;

CREATE INDEX marks_key ON marks (key);
