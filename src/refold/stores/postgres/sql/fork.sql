-- name: lock_tenant
SELECT pg_advisory_xact_lock(hashtextextended('refold.tenant ' || $1, 0))

-- name: messages_at
SELECT messages FROM refold.entries WHERE tenant = $1 AND session = $2 AND seq = $3

-- name: add_fork
INSERT INTO refold.sessions (created_at, updated_at, used, head, messages, revision, not_before,
                             own_from, messages_before, indexed, unindexed, tenant, session,
                             forked_from, format, profile, outline)
VALUES ($4, $4, $4 / 60000, $5, $6, 0, $7, $5 + 1, $6, 0, true, $1, $2, $3, $8, $9, $10)
ON CONFLICT (tenant, session) DO NOTHING
RETURNING key

-- name: add_segments
INSERT INTO refold.segments (tenant, session, first, last, source)
SELECT $1, $2, first, last, source
FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) AS part (source, first, last)

-- name: copied_artifacts
SELECT found.artifacts
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
CROSS JOIN LATERAL (
    SELECT artifacts FROM refold.entries
    WHERE tenant = $1 AND session = part.source AND seq BETWEEN part.first AND part.last
      AND artifacts IS NOT NULL
    OFFSET 0
) AS found

-- name: use_artifacts
UPDATE refold.artifacts AS stored SET uses = stored.uses + used.times
FROM (
    SELECT new.hash, new.times FROM refold.artifacts AS held
    JOIN unnest($2::bytea[], $3::bigint[]) AS new (hash, times) ON held.hash = new.hash
    WHERE held.tenant = $1 ORDER BY held.hash FOR NO KEY UPDATE OF held
) AS used
WHERE stored.tenant = $1 AND stored.hash = used.hash

-- name: copy_entries
INSERT INTO refold.entries (session, seq, at, version, messages, id, control, forgotten, tenant,
                            kind, scope, rests_on, artifacts, body)
SELECT $2, found.*
FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) AS part (source, first, last)
CROSS JOIN LATERAL (
    SELECT seq, at, version, messages, id, control, forgotten, tenant, kind, scope, rests_on,
           artifacts, body
    FROM refold.entries
    WHERE tenant = $1 AND session = part.source AND seq BETWEEN part.first AND part.last
    OFFSET 0
) AS found

-- name: add_copies
INSERT INTO refold.copies (tenant, session, first, last, source)
SELECT $1, $2, first, last, source
FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) AS part (source, first, last)
