-- name: unindexed
SELECT key, coalesce(
    (SELECT max(place) FROM entries
     WHERE place BETWEEN key << 32 AND key << 32 | 0xffffffff) & 0xffffffff,
    0
)
FROM sessions WHERE unindexed ORDER BY key

-- name: progress
SELECT indexed, tenant FROM sessions WHERE key = ?

-- name: next_entries
SELECT place, id, at, kind, version, body, scope, rests_on, artifacts, forgotten
FROM entries WHERE place BETWEEN ? AND ? ORDER BY place LIMIT ?

-- name: set_progress
UPDATE sessions SET indexed = ?, unindexed = ?, revision = revision + 1 WHERE key = ?

-- name: add_words
INSERT INTO words (rowid, text) VALUES (?, ?)

-- name: remove_words
INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)

-- name: merge_words
INSERT INTO words (words) VALUES ('optimize')

-- name: empty_words
INSERT INTO words (words) VALUES ('delete-all')

-- name: index_all_anew
UPDATE sessions SET indexed = 0, unindexed = 1, revision = revision + 1

-- name: fact
SELECT value FROM facts WHERE name = ?

-- name: set_fact
INSERT INTO facts (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
