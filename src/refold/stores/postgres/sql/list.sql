-- name: newest
SELECT session, key, head, messages, format, profile, created_at, updated_at, outline, not_before,
       own_from, forked_from, revision, indexed
FROM refold.sessions
WHERE tenant = $1 AND session IS NOT NULL AND used <= $2 AND (updated_at, key) < ($3, $4)
ORDER BY used DESC, updated_at DESC, key DESC
LIMIT $5

-- name: named
SELECT key FROM refold.sessions WHERE tenant = $1 AND session >= $2 AND session < $3 LIMIT $4

-- name: newest_of_few
SELECT found.* FROM unnest($5::bigint[]) AS wanted (key)
CROSS JOIN LATERAL (
    SELECT session, key, head, messages, format, profile, created_at, updated_at, outline,
           not_before, own_from, forked_from, revision, indexed
    FROM refold.sessions
    WHERE tenant = $1 AND sessions.key = wanted.key AND session IS NOT NULL
      AND (updated_at, sessions.key) < ($2, $3)
    OFFSET 0 -- so that it is looked up by its key
) AS found
ORDER BY found.updated_at DESC, found.key DESC
LIMIT $4

-- name: newest_of_many
SELECT session, key, head, messages, format, profile, created_at, updated_at, outline, not_before,
       own_from, forked_from, revision, indexed
FROM refold.sessions
WHERE tenant = $1 AND session IS NOT NULL AND used <= $2 AND (updated_at, key) < ($3, $4)
  AND (key = ANY ($6::bigint[]) OR starts_with(session, $7))
ORDER BY used DESC, updated_at DESC, key DESC
LIMIT $5
