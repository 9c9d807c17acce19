-- name: data_version
PRAGMA data_version

-- name: places_of_id
SELECT place FROM entries WHERE id = ?

-- name: add_session
INSERT INTO sessions (tenant, session, format, profile, created_at, used, outline, revision,
                      not_before, own_from, messages_before, forked_from, indexed, unindexed)
VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, 0, 1)

-- name: add_entry
INSERT INTO entries (place, id, at, kind, version, scope, messages, control, forgotten, rests_on,
                     artifacts, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_plain_entry
INSERT INTO entries (place, id, at, kind, version, scope, messages, control, forgotten, body)
SELECT ?, ?, ?, ?, ?, ?, ?, 0, 0, ? FROM sessions WHERE key = ? AND revision = ?

-- name: move_session
UPDATE sessions SET used = ?, outline = ?, unindexed = 1, revision = revision + 1 WHERE key = ?

-- name: use_artifact
UPDATE artifacts SET uses = uses + 1 WHERE tenant = ? AND hash = ?

-- name: add_artifact
INSERT INTO artifacts (tenant, hash, media_type, uses) VALUES (?, ?, ?, 1)

-- name: add_artifact_data
INSERT INTO artifact_data (key, data) VALUES (?, ?)
