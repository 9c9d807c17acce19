-- name: session
SELECT key, head, messages, format, profile, created_at, updated_at, outline, not_before, own_from,
       forked_from, revision, indexed
FROM refold.sessions WHERE tenant = $1 AND session = $2

-- name: forgotten_at
SELECT forgotten_at FROM refold.tombstones WHERE tenant = $1 AND session = $2

-- name: segments
SELECT source, first, last FROM refold.segments
WHERE tenant = $1 AND session = $2 AND last >= $3 AND first <= $4 ORDER BY first

-- name: entries
SELECT session, seq, id, at, kind, version, body, scope, rests_on, artifacts, forgotten
FROM refold.entries WHERE tenant = $1 AND session = $2 AND seq BETWEEN $3 AND $4 ORDER BY seq

-- name: entries_of_many
SELECT found.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
CROSS JOIN LATERAL (
    SELECT session, seq, id, at, kind, version, body, scope, rests_on, artifacts, forgotten
    FROM refold.entries
    WHERE tenant = $1 AND session = part.source AND seq BETWEEN part.first AND part.last
    OFFSET 0  -- so that each part is looked up by itself, whatever the planner guesses
) AS found

-- name: controls
SELECT found.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
CROSS JOIN LATERAL (
    SELECT session, seq, id, at, kind, version,
           CASE kind WHEN 'request' THEN ''::bytea ELSE body END AS body, scope, rests_on,
           CASE kind WHEN 'request' THEN NULL ELSE artifacts END AS artifacts, forgotten
    FROM refold.entries
    WHERE control AND tenant = $1 AND session = part.source
      AND seq BETWEEN part.first AND part.last
    OFFSET 0  -- so that each part is looked up by itself, whatever the planner guesses
) AS found

-- name: seen
SELECT found.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
CROSS JOIN LATERAL (
    SELECT session, seq, id, at, kind, version, body, scope, rests_on, artifacts, forgotten
    FROM refold.entries
    WHERE tenant = $1 AND session = part.source AND id = ANY ($5::uuid[])
      AND seq BETWEEN part.first AND part.last
    OFFSET 0  -- so that each part is looked up by itself, whatever the planner guesses
) AS found

-- name: artifacts
SELECT hash, data, media_type FROM refold.artifacts WHERE tenant = $1 AND hash = ANY ($2::bytea[])
