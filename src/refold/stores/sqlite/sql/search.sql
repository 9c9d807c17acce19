-- name: matches
SELECT places.rowid, entries.id, places.rowid & 0xffffffff
FROM words AS places
JOIN entries ON entries.place = places.rowid
JOIN sessions ON sessions.key = places.rowid >> 32
WHERE places.words MATCH ? AND sessions.tenant = ?
ORDER BY entries.at DESC, places.rowid & 0xffffffff DESC, entries.id DESC, places.rowid

-- name: matches_within
SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?

-- name: name
SELECT session FROM sessions WHERE key = ?

-- name: readers
SELECT session FROM segments WHERE source = ? AND first <= ? AND last >= ?
