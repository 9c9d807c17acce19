-- name: living_entries
SELECT place, id, at, kind, version, body, scope, rests_on, artifacts, forgotten
FROM entries WHERE place BETWEEN ? AND ? AND NOT forgotten ORDER BY place LIMIT ?

-- name: living_places
SELECT place FROM entries WHERE place BETWEEN ? AND ? AND NOT forgotten

-- name: derived
SELECT place, id, at, kind, version, x'', scope, rests_on, NULL, forgotten
FROM entries INDEXED BY entries_derived
WHERE rests_on IS NOT NULL AND place BETWEEN ? AND ? AND NOT forgotten ORDER BY place

-- name: copies
SELECT session, first, last FROM copies WHERE source = :key AND first <= :last AND last >= :first
UNION ALL
SELECT source, first, last FROM copies WHERE session = :key AND first <= :last AND last >= :first

-- name: readers
SELECT DISTINCT session FROM segments WHERE source = ? AND first <= ? AND last >= ?

-- name: name
SELECT session FROM sessions WHERE key = ?

-- name: erase
UPDATE entries SET body = ?, scope = ?, artifacts = NULL, forgotten = 1 WHERE place = ?

-- name: set_outline
UPDATE sessions SET outline = ?, revision = revision + 1 WHERE key = ?

-- name: drop_use
UPDATE artifacts SET uses = uses - 1 WHERE tenant = ? AND hash = ? RETURNING key, uses

-- name: drop_artifact
DELETE FROM artifacts WHERE key = ?

-- name: drop_artifact_data
DELETE FROM artifact_data WHERE key = ?

-- name: add_tombstone
INSERT INTO tombstones (tenant, session, forgotten_at) VALUES (?, ?, ?)
ON CONFLICT (tenant, session) DO UPDATE SET forgotten_at = excluded.forgotten_at

-- name: unname
UPDATE sessions
SET session = NULL, outline = x'', forked_from = NULL, revision = revision + 1
WHERE key = ?

-- name: orphan_forks
UPDATE sessions SET forked_from = NULL, revision = revision + 1
WHERE tenant = ? AND forked_from = ?

-- name: sources
SELECT DISTINCT source FROM segments WHERE session = ?

-- name: drop_segments
DELETE FROM segments WHERE session = ?

-- name: drop_copies
DELETE FROM copies WHERE session = :key
  AND NOT EXISTS (SELECT 1 FROM copies AS later WHERE later.source = :key)

-- name: still_read
SELECT first, last FROM segments WHERE source = ?

-- name: all_entries
SELECT place, id, at, kind, version, body, scope, rests_on, artifacts, forgotten
FROM entries WHERE place BETWEEN ? AND ? ORDER BY place LIMIT ?

-- name: drop_entry
DELETE FROM entries WHERE place = ?

-- name: drop_session
DELETE FROM sessions WHERE key = ?

-- name: maybe_unused
SELECT session FROM sessions
WHERE tenant = ? AND session IS NOT NULL AND used <= ? ORDER BY session

-- name: begin_erasure
INSERT INTO facts (name, value) VALUES ('erasing', 1 + abs(random() / 2))
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: end_erasure
UPDATE facts SET value = 0 WHERE name = 'erasing' AND value = ?

-- name: forgotten_sessions
SELECT tombstones.tenant, tombstones.session, forgotten_at, first.id
FROM tombstones
LEFT JOIN sessions USING (tenant, session)
LEFT JOIN segments ON segments.session = sessions.key AND segments.first = 1
LEFT JOIN entries AS first ON first.place = coalesce(segments.source, sessions.key) << 32 | 1
ORDER BY tombstones.tenant, tombstones.session

-- name: forgotten_entries
SELECT sessions.tenant, sessions.session, entries.place & 0xffffffff, entries.id
FROM entries
JOIN (
    SELECT key AS reader, key AS source, own_from AS first, 0xffffffff AS last FROM sessions
    UNION ALL
    SELECT session, source, first, last FROM segments
) AS part ON part.source = entries.place >> 32
         AND entries.place & 0xffffffff BETWEEN part.first AND part.last
JOIN sessions ON sessions.key = part.reader
WHERE entries.forgotten AND sessions.session IS NOT NULL
ORDER BY sessions.tenant, sessions.session, 3
