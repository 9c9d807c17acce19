-- The data of large artifacts, in pieces. They are written before the entry that uses them, each in
-- a transaction of its own, so that nobody waits for the write lock longer than one piece takes.

CREATE TABLE uploads (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,       -- when it was begun, in milliseconds; 0 once it is given up
    artifact INTEGER UNIQUE          -- whose data this is; none until an entry uses it
) STRICT;

CREATE TABLE upload_pieces (
    place INTEGER PRIMARY KEY,       -- the upload's id in the upper 32 bits, a number in the lower 32
    data  BLOB NOT NULL
) STRICT;
