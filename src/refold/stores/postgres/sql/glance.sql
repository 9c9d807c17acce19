-- name: session
SELECT * FROM refold.read_session($1, $2)

-- name: entries
SELECT * FROM refold.read_entries($1, $2, $3, $4, $5)

-- name: artifacts
SELECT * FROM refold.read_artifacts($1, $2, $3, $4)
