-- name: add_segment
INSERT INTO segments (session, first, last, source) VALUES (?, ?, ?, ?)

-- name: messages_at
SELECT messages FROM entries WHERE place = ?

-- name: copy_entries
INSERT INTO entries (place, id, at, kind, version, scope, messages, control, forgotten, rests_on,
                     artifacts, body)
SELECT place + ?, id, at, kind, version, scope, messages, control, forgotten, rests_on, artifacts,
       body
FROM entries WHERE place BETWEEN ? AND ?

-- name: add_copy
INSERT INTO copies (session, first, last, source) VALUES (?, ?, ?, ?)

-- name: use_artifact
UPDATE artifacts SET uses = uses + 1 WHERE tenant = ? AND hash = ?
