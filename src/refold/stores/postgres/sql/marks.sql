-- name: append_plain
SELECT refold.put_mark(
    $1::text, $2::bigint,
    refold.append_plain($1::text, $2::bigint, $3::bigint, $4::bigint, $5::uuid, $6::bigint,
                        $7::text, $8::bigint, $9::bytea, $10::boolean, $11::bytea),
    $12::bytea, $13::bigint
)

-- name: append
SELECT CASE WHEN refold.append(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24
) THEN refold.put_mark($1, $2, ($9::bigint[])[$27::int + 1], $25, $26) END

-- name: begin_session
SELECT begun.key, refold.put_mark($1, begun.key, ($11::bigint[])[$29::int + 1], $27, $28)
FROM (
    SELECT refold.begin_session(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
        $21, $22, $23, $24, $25, $26
    ) AS key OFFSET 0
) AS begun

-- name: newest
SELECT max(seq) FROM refold.marks WHERE tenant = $1 AND session = $2

-- name: marked
SELECT found.key, holder.session, found.seq, newest.seqs[1], coalesce(newest.seqs[2], 0)
FROM unnest($2::bytea[]) AS asked (key)
CROSS JOIN LATERAL (
    SELECT id, session, seq, key FROM refold.marks WHERE tenant = $1 AND key = asked.key OFFSET 0
) AS found
CROSS JOIN LATERAL (
    SELECT session FROM refold.sessions WHERE tenant = $1 AND key = found.session OFFSET 0
) AS holder
CROSS JOIN LATERAL (
    SELECT ARRAY(
        SELECT seq FROM refold.marks WHERE tenant = $1 AND session = found.session
        ORDER BY seq DESC LIMIT 2
    ) AS seqs OFFSET 0
) AS newest
ORDER BY found.id DESC

-- name: drop
DELETE FROM refold.marks
USING unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS part (source, first, last)
WHERE tenant = $1 AND session = part.source AND seq BETWEEN part.first AND part.last

-- name: drop_all
DELETE FROM refold.marks WHERE tenant = $1 AND session = $2

-- name: note_erased
SELECT refold.note_erased_marks()
