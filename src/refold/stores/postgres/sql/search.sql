-- name: found
WITH found AS MATERIALIZED (
    SELECT session, seq FROM refold.places($2::text[])
), once AS (
    SELECT DISTINCT ON (entry.id, entry.seq)
           reader.name, found.session AS holder, entry.seq, entry.id, entry.at
    FROM found
    CROSS JOIN LATERAL (
        SELECT id, seq, at FROM refold.entries
        WHERE tenant = $1 AND session = found.session AND seq BETWEEN found.seq AND found.seq
        ORDER BY seq LIMIT 1 -- so that it is looked up by its seq, whatever the planner guesses
    ) AS entry
    CROSS JOIN LATERAL ( -- a fork is younger than what it reads, so a holder with a name is first
        SELECT coalesce(holder.session, fork.session) AS name, coalesce(fork.key, holder.key) AS key
        FROM refold.sessions AS holder
        LEFT JOIN LATERAL (
            SELECT reading.key, reading.session FROM refold.segments AS shared
            JOIN refold.sessions AS reading
              ON reading.tenant = $1 AND reading.key = shared.session
            WHERE holder.session IS NULL AND shared.tenant = $1 AND shared.source = found.session
              AND found.seq BETWEEN shared.first AND shared.last
            ORDER BY reading.key LIMIT 1
        ) AS fork ON true
        WHERE holder.tenant = $1 AND holder.key = found.session
        OFFSET 0
    ) AS reader
    ORDER BY entry.id, entry.seq, reader.key
)
SELECT name, holder, seq FROM once ORDER BY at DESC, seq DESC, id DESC LIMIT $3

-- name: found_within
SELECT session, seq FROM refold.held_within($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
GROUP BY session, seq HAVING count(*) = cardinality($1::text[])
ORDER BY seq DESC LIMIT $5

-- name: entries_at
SELECT found.* FROM unnest($2::bigint[], $3::bigint[]) AS place (holder, seq)
CROSS JOIN LATERAL (
    SELECT session, seq, id, at, kind, version, body, scope, rests_on, artifacts, forgotten
    FROM refold.entries
    WHERE tenant = $1 AND session = place.holder AND seq BETWEEN place.seq AND place.seq
    ORDER BY seq LIMIT 1
) AS found

-- name: matches
WITH held AS MATERIALIZED (
    SELECT DISTINCT wanted.term, place.session, place.seq
    FROM unnest($2::bigint[], $3::text[]) AS wanted (term, run)
    CROSS JOIN LATERAL refold.places(ARRAY[wanted.run]) AS place
    WHERE $5::bigint[] IS NULL AND NOT EXISTS ( -- a copy counts only once its original is gone
        SELECT FROM refold.copies
        WHERE tenant = $1 AND copies.session = place.session
          AND place.seq BETWEEN first AND last
          AND EXISTS (
            SELECT FROM refold.entries
            WHERE tenant = $1 AND entries.session = copies.source
              AND entries.seq BETWEEN place.seq AND place.seq
            ORDER BY entries.seq OFFSET 0
          )
        OFFSET 0
    )
    UNION
    SELECT ($2::bigint[])[place.run], place.session, place.seq
    FROM refold.held_within($3::text[], $5::bigint[], $6::bigint[], $7::bigint[]) AS place
), rarest AS (
    SELECT term, count(*) AS holding, row_number() OVER (ORDER BY count(*), term) AS rank
    FROM held GROUP BY term
), taken AS (
    SELECT session, seq, array_agg(term ORDER BY term) AS terms
    FROM held JOIN rarest USING (term) GROUP BY session, seq
    ORDER BY min(rank), CASE WHEN $5::bigint[] IS NULL THEN session END DESC, seq DESC
    LIMIT $4
)
SELECT counted.terms, counted.holding, taken.terms, reader.name, taken.seq, entry.id, entry.at,
       entry.kind, entry.scope, entry.messages, line.size
FROM (
    SELECT array_agg(term) AS terms, array_agg(holding) AS holding FROM rarest
) AS counted
LEFT JOIN taken ON true
LEFT JOIN LATERAL (
    SELECT id, at, kind, scope, messages FROM refold.entries
    WHERE tenant = $1 AND session = taken.session AND seq BETWEEN taken.seq AND taken.seq
    ORDER BY seq LIMIT 1
) AS entry ON true
LEFT JOIN LATERAL (
    SELECT size FROM refold.words
    WHERE tenant = $1 AND session = taken.session AND seq = taken.seq
    UNION ALL
    SELECT size FROM refold.word_chunks
    WHERE tenant = $1 AND session = taken.session AND seq = taken.seq AND chunk = 1
    OFFSET 0
) AS line ON true
LEFT JOIN LATERAL (
    SELECT coalesce(holder.session, fork.session) AS name FROM refold.sessions AS holder
    LEFT JOIN LATERAL (
        SELECT reading.session FROM refold.segments AS shared
        JOIN refold.sessions AS reading ON reading.tenant = $1 AND reading.key = shared.session
        WHERE holder.session IS NULL AND shared.tenant = $1 AND shared.source = taken.session
          AND taken.seq BETWEEN shared.first AND shared.last
        ORDER BY reading.key LIMIT 1
    ) AS fork ON true
    WHERE holder.tenant = $1 AND holder.key = taken.session
    OFFSET 0
) AS reader ON true
ORDER BY taken.session, taken.seq

-- name: size
SELECT count(session), coalesce(sum(messages - messages_before), 0)::bigint
FROM refold.sessions WHERE tenant = $1

-- name: sessions_with
WITH found AS MATERIALIZED (
    SELECT session, seq FROM refold.places($2::text[])
)
SELECT session FROM found
UNION
SELECT shared.session FROM (
    SELECT session, array_agg(seq) AS seqs FROM found GROUP BY session
) AS held
CROSS JOIN LATERAL (
    SELECT session FROM refold.segments
    WHERE tenant = $1 AND source = held.session
      AND EXISTS (SELECT FROM unnest(held.seqs) AS seq WHERE seq BETWEEN first AND last)
    OFFSET 0
) AS shared
