-- name: hold_family
SELECT key FROM refold.sessions WHERE tenant = $1 AND key = ANY (ARRAY(
    SELECT key FROM refold.sessions WHERE tenant = $1 AND session = $2
    UNION
    SELECT key FROM refold.sessions WHERE tenant = $1 AND forked_from = $2
    UNION
    SELECT source FROM refold.segments WHERE tenant = $1 AND session = (
        SELECT key FROM refold.sessions WHERE tenant = $1 AND session = $2
    )
)) ORDER BY key FOR UPDATE

-- name: hold_sessions
SELECT key, session, own_from, head FROM refold.sessions
WHERE tenant = $1 AND key = ANY ($2::bigint[]) ORDER BY key FOR UPDATE

-- name: living
SELECT source, min(seq), max(seq) FROM (
    SELECT part.source, found.seq,
           found.seq - row_number() OVER (PARTITION BY part.source ORDER BY found.seq) AS island
    FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
    CROSS JOIN LATERAL (
        SELECT seq FROM refold.entries
        WHERE tenant = $1 AND session = part.source AND seq BETWEEN part.first AND part.last
          AND NOT forgotten
        OFFSET 0
    ) AS found
) AS numbered GROUP BY source, island

-- name: copies
SELECT other.session, greatest(part.first, other.first), least(part.last, other.last)
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
CROSS JOIN LATERAL (
    SELECT session, first, last FROM refold.copies
    WHERE tenant = $1 AND source = part.source AND first <= part.last AND last >= part.first
    UNION ALL
    SELECT source, first, last FROM refold.copies
    WHERE tenant = $1 AND session = part.source AND first <= part.last AND last >= part.first
    OFFSET 0
) AS other

-- name: readers
SELECT DISTINCT other.session
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
CROSS JOIN LATERAL (
    SELECT session FROM refold.segments
    WHERE tenant = $1 AND source = part.source AND first <= part.last AND last >= part.first
    OFFSET 0
) AS other

-- name: segments
SELECT session, source, first, last FROM refold.segments
WHERE tenant = $1 AND session = ANY ($2::bigint[]) ORDER BY session, first

-- name: derived
SELECT found.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
CROSS JOIN LATERAL (
    SELECT session, seq, id, at, kind, version, ''::bytea AS body, scope, rests_on,
           NULL::text AS artifacts, forgotten
    FROM refold.entries
    WHERE tenant = $1 AND session = part.source AND seq BETWEEN part.first AND part.last
      AND rests_on IS NOT NULL AND NOT forgotten
    OFFSET 0
) AS found

-- name: set_outlines
UPDATE refold.sessions SET outline = new.outline, revision = revision + 1
FROM unnest($2::bigint[], $3::bytea[]) AS new (key, outline)
WHERE tenant = $1 AND sessions.key = new.key

-- name: raise_revisions
UPDATE refold.sessions SET revision = revision + 1 WHERE tenant = $1 AND key = ANY ($2::bigint[])

-- name: add_tombstone
INSERT INTO refold.tombstones (tenant, session, forgotten_at) VALUES ($1, $2, $3)
ON CONFLICT (tenant, session) DO UPDATE SET forgotten_at = excluded.forgotten_at

-- name: sources
SELECT DISTINCT source FROM refold.segments WHERE tenant = $1 AND session = $2

-- name: unname
UPDATE refold.sessions
SET session = NULL, outline = '', forked_from = NULL, revision = revision + 1
WHERE tenant = $1 AND key = $2

-- name: orphan_forks
UPDATE refold.sessions SET forked_from = NULL, revision = revision + 1
WHERE tenant = $1 AND forked_from = $2

-- name: drop_segments
DELETE FROM refold.segments WHERE tenant = $1 AND session = $2

-- name: nameless
SELECT key, head FROM refold.sessions
WHERE tenant = $1 AND key = ANY ($2::bigint[]) AND session IS NULL ORDER BY key

-- name: still_read
SELECT source, first, last FROM refold.segments WHERE tenant = $1 AND source = ANY ($2::bigint[])

-- name: drop_copies
DELETE FROM refold.copies WHERE tenant = $1 AND session = $2
  AND NOT EXISTS (SELECT FROM refold.copies AS later WHERE later.tenant = $1 AND later.source = $2)

-- name: drop_session
DELETE FROM refold.sessions WHERE tenant = $1 AND key = $2

-- name: end_earlier
UPDATE refold.sessions AS holder
SET revision = revision + 1,
    head = coalesce((
        SELECT max(seq) FROM refold.entries
        WHERE tenant = $1 AND session = $2 AND seq >= holder.own_from
    ), own_from - 1),
    messages = coalesce((
        SELECT entries.messages FROM refold.entries
        WHERE tenant = $1 AND session = $2 AND seq >= holder.own_from ORDER BY seq DESC LIMIT 1
    ), messages_before)
WHERE tenant = $1 AND key = $2

-- name: maybe_unused
SELECT session FROM refold.sessions
WHERE tenant = $1 AND session IS NOT NULL AND used <= $2 ORDER BY session

-- name: keeping
SELECT found.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
CROSS JOIN LATERAL (
    SELECT session, seq, id, at, kind, version,
           CASE WHEN kind = ANY ($5::text[]) THEN body ELSE ''::bytea END AS body, scope, rests_on,
           artifacts, forgotten
    FROM refold.entries
    WHERE tenant = $1 AND session = part.source AND seq BETWEEN part.first AND part.last
      AND NOT forgotten AND (artifacts IS NOT NULL OR kind = ANY ($5::text[]))
    OFFSET 0
) AS found

-- name: erase_keeping
UPDATE refold.entries SET body = new.body, scope = $6, artifacts = NULL, forgotten = true
FROM unnest($2::bigint[], $3::bigint[], $4::uuid[], $5::bytea[]) AS new (session, seq, id, body)
WHERE tenant = $1 AND entries.session = new.session AND entries.seq = new.seq
  AND entries.id = new.id  -- whichever index is used, it finds one

-- name: erase
UPDATE refold.entries SET body = $5, scope = $6, artifacts = NULL, forgotten = true
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
WHERE tenant = $1 AND session = part.source AND seq BETWEEN part.first AND part.last
  AND NOT forgotten

-- name: drop_entries
WITH gone AS (
    DELETE FROM refold.entries
    USING unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
    WHERE tenant = $1 AND session = part.source AND seq BETWEEN part.first AND part.last
    RETURNING id, kind, artifacts
)
SELECT CASE WHEN kind = $5 THEN id END, artifacts FROM gone
WHERE artifacts IS NOT NULL OR kind = $5

-- name: drop_words
DELETE FROM refold.words
USING unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
WHERE tenant = $1 AND session = part.source AND seq BETWEEN part.first AND part.last

-- name: drop_chunks
DELETE FROM refold.word_chunks
USING unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
WHERE tenant = $1 AND session = part.source AND seq BETWEEN part.first AND part.last

-- name: note_erased_chunks
SELECT refold.note_erased_chunks()

-- name: drop_uses
UPDATE refold.artifacts AS stored SET uses = stored.uses - lost.times
FROM (
    SELECT gone.hash, gone.times FROM refold.artifacts AS held
    JOIN unnest($2::bytea[], $3::bigint[]) AS gone (hash, times) ON held.hash = gone.hash
    WHERE held.tenant = $1 ORDER BY held.hash FOR UPDATE OF held
) AS lost
WHERE stored.tenant = $1 AND stored.hash = lost.hash
RETURNING stored.hash, stored.uses

-- name: drop_artifacts
DELETE FROM refold.artifacts WHERE tenant = $1 AND hash = ANY ($2::bytea[])

-- name: forget_folds
SELECT refold.forget_folds($1, $2::uuid[])

-- name: note_erasure
SELECT refold.note_erasure($1::bigint[], $2::bytea[])
