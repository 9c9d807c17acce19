-- name: facts
SELECT name, value FROM refold.facts WHERE tenant = $1

-- name: unindexed
SELECT key, head, head - greatest(indexed, own_from - 1) FROM refold.sessions
WHERE tenant = $1 AND unindexed ORDER BY key

-- name: next_entries
SELECT key, head, indexed, revision, session, seq, id, at, kind, version,
       CASE WHEN before < $4 THEN body END, -- of what comes later it is not read
       scope, rests_on, artifacts, forgotten
FROM (
    SELECT holder.key, holder.head, holder.indexed, holder.revision, found.*,
           sum(octet_length(found.body)) OVER (ORDER BY holder.key, found.seq)
               - octet_length(found.body) AS before
    FROM refold.sessions AS holder
    LEFT JOIN LATERAL (
        SELECT session, seq, id, at, kind, version, body, scope, rests_on, artifacts, forgotten
        FROM refold.entries
        WHERE tenant = $1 AND session = holder.key AND seq > holder.indexed
        ORDER BY seq LIMIT $3
    ) AS found ON true
    WHERE holder.tenant = $1 AND holder.key = ANY ($2::bigint[]) AND holder.unindexed
) AS next
ORDER BY key, seq

-- name: keep_version
SELECT value FROM refold.facts WHERE tenant = $1 AND name = $2 FOR SHARE

-- name: keep_sessions
SELECT holder.key FROM refold.sessions AS holder
JOIN unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS known (key, indexed, revision)
  ON holder.key = known.key AND holder.indexed = known.indexed
 AND holder.revision = known.revision
WHERE holder.tenant = $1 ORDER BY holder.key FOR KEY SHARE OF holder

-- name: add_words
INSERT INTO refold.words (tenant, session, seq, size, line)
SELECT $1, session, seq, size, line
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) AS new (session, seq, size, line)
ORDER BY session, seq
ON CONFLICT DO NOTHING

-- name: add_chunks
INSERT INTO refold.word_chunks (tenant, session, seq, chunk, size, line)
SELECT $1, session, seq, chunk, size, line
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[])
    AS new (session, seq, chunk, size, line)
ORDER BY session, seq, chunk
ON CONFLICT DO NOTHING

-- name: set_progress
UPDATE refold.sessions AS holder
SET indexed = new.reached, unindexed = holder.head > new.reached
FROM (
    SELECT known.key, known.indexed, known.reached FROM refold.sessions AS held
    JOIN unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS known (key, indexed, reached)
      ON held.key = known.key
    WHERE held.tenant = $1 ORDER BY held.key FOR NO KEY UPDATE OF held
) AS new
WHERE holder.tenant = $1 AND holder.key = new.key AND holder.indexed = new.indexed

-- name: hold_version
INSERT INTO refold.facts (tenant, name, value) VALUES ($1, $2, 0)
ON CONFLICT (tenant, name) DO UPDATE SET value = facts.value
RETURNING value

-- name: hold_indexed
SELECT key FROM refold.sessions WHERE tenant = $1 AND key > $2 AND indexed > 0
ORDER BY key LIMIT $3 FOR UPDATE

-- name: drop_words
DELETE FROM refold.words WHERE tenant = $1 AND session = ANY ($2::bigint[])

-- name: drop_chunks
DELETE FROM refold.word_chunks WHERE tenant = $1 AND session = ANY ($2::bigint[])

-- name: index_anew
UPDATE refold.sessions SET indexed = 0, unindexed = true
WHERE tenant = $1 AND key = ANY ($2::bigint[])

-- name: set_fact
INSERT INTO refold.facts (tenant, name, value) VALUES ($1, $2, $3)
ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value
