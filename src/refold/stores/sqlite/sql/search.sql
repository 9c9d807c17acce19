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

-- name: places
SELECT rowid FROM words
WHERE words MATCH ? AND rowid >> 32 IN (SELECT key FROM sessions WHERE tenant = ?)
  AND NOT EXISTS ( -- a copy counts only once its original is gone
    SELECT 1 FROM copies
    JOIN entries ON place = source << 32 | (words.rowid & 0xffffffff)
    WHERE copies.session = words.rowid >> 32
      AND words.rowid & 0xffffffff BETWEEN first AND last
  )
ORDER BY rowid DESC

-- name: places_within
SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC

-- name: size
SELECT count(session), coalesce(sum(coalesce(
    (SELECT messages FROM entries
     WHERE place BETWEEN key << 32 | own_from AND key << 32 | 0xffffffff
     ORDER BY place DESC LIMIT 1) - messages_before,
    0
)), 0)
FROM sessions WHERE tenant = ?

-- name: matched
SELECT place, entries.id, at, kind, scope, messages, sz
FROM json_each(?) AS wanted
JOIN entries ON place = wanted.value
JOIN words_docsize ON words_docsize.id = place
ORDER BY place
