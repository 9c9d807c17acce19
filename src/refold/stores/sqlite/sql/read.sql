-- name: session
SELECT key, format, profile, created_at, used, outline, not_before, own_from, messages_before,
       forked_from, unindexed, revision, newest.place & 0xffffffff, newest.at, newest.messages
FROM sessions LEFT JOIN entries AS newest ON newest.place = (
    SELECT max(place) FROM entries
    WHERE place BETWEEN sessions.key << 32 | sessions.own_from AND sessions.key << 32 | 0xffffffff
)
WHERE tenant = ? AND session = ?

-- name: forgotten_at
SELECT forgotten_at FROM tombstones WHERE tenant = ? AND session = ?

-- name: segments
SELECT source, first, last FROM segments
WHERE session = ? AND last >= ? AND first <= ? ORDER BY first

-- name: entries
SELECT place, id, at, kind, version, body, scope, rests_on, artifacts, forgotten
FROM entries WHERE place BETWEEN ? AND ? ORDER BY place

-- name: controls
SELECT place, id, at, kind, version, CASE kind WHEN 'request' THEN x'' ELSE body END, scope,
       rests_on, CASE kind WHEN 'request' THEN NULL ELSE artifacts END, forgotten
FROM entries INDEXED BY entries_control
WHERE control AND place BETWEEN ? AND ? ORDER BY place

-- name: artifact
SELECT key, data, media_type FROM artifacts LEFT JOIN artifact_data USING (key)
WHERE tenant = ? AND hash = ?
