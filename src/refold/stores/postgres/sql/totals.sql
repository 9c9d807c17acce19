-- name: append
SELECT refold.book(
    refold.append(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
        $21, $22, $23, $24
    ), $1, $2, $25, $26, $27, $28, $29, $30
)

-- name: begin_session
SELECT begun.key, refold.book(begun.key IS NOT NULL, $1, begun.key, $27, $28, $29, $30, $31, $32)
FROM (
    SELECT refold.begin_session(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
        $21, $22, $23, $24, $25, $26
    ) AS key OFFSET 0
) AS begun

-- name: append_marked
SELECT refold.book(
    CASE WHEN refold.append(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
        $21, $22, $23, $24
    ) THEN refold.put_mark($1, $2, ($9::bigint[])[$27::int + 1], $25, $26) IS NOT NULL END,
    $1, $2, $28, $29, $30, $31, $32, $33
)

-- name: begin_session_marked
SELECT marked.key,
       refold.book(marked.placed IS NOT NULL, $1, marked.key, $30, $31, $32, $33, $34, $35)
FROM (
    SELECT begun.key, refold.put_mark($1, begun.key, ($11::bigint[])[$29::int + 1], $27, $28)
           AS placed
    FROM (
        SELECT refold.begin_session(
            $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
            $20, $21, $22, $23, $24, $25, $26
        ) AS key OFFSET 0
    ) AS begun OFFSET 0
) AS marked

-- name: accounts
SELECT version, state FROM refold.accounts WHERE tenant = $1 AND session = $2

-- name: count_later
UPDATE refold.accounts SET version = version + 1, state = NULL
WHERE tenant = $1 AND session = ANY ($2::bigint[])

-- name: add_uncounted
INSERT INTO refold.accounts (session, version, tenant) VALUES ($2, 1, $1)

-- name: count_all_later
INSERT INTO refold.accounts AS stored (session, version, tenant)
SELECT key, 1, $1 FROM refold.sessions WHERE tenant = $1 AND session IS NOT NULL
ON CONFLICT (tenant, session) DO UPDATE SET version = stored.version + 1, state = NULL

-- name: put_state
INSERT INTO refold.accounts AS stored (session, version, tenant, state) VALUES ($2, 1, $1, $3)
ON CONFLICT (tenant, session) DO UPDATE
SET version = stored.version + 1, state = excluded.state

-- name: drop_lost_states
DELETE FROM refold.accounts WHERE tenant = $1 AND session NOT IN (
    SELECT key FROM refold.sessions WHERE tenant = $1 AND session IS NOT NULL
)

-- name: drop_lost_lines
DELETE FROM refold.totals WHERE tenant = $1 AND session NOT IN (
    SELECT key FROM refold.sessions WHERE tenant = $1 AND session IS NOT NULL
)

-- name: drop_state
DELETE FROM refold.accounts WHERE tenant = $1 AND session = $2

-- name: drop_lines
DELETE FROM refold.totals WHERE tenant = $1 AND session = $2

-- name: add_lines
SELECT refold.add_lines($1, $2, $3, $4, $5, $6)

-- name: hold
SELECT key, revision, head FROM refold.sessions WHERE tenant = $1 AND session = $2 FOR UPDATE

-- name: by_day
SELECT day, model, key, '',
       sum(requests), sum(folds), sum(input), sum(output), sum(cache_read), sum(cache_write),
       sum(compared), sum(paid), sum(whole), sum(summaries), sum(summaries_cost), sum(unused),
       sum(unused_cost), sum(rereads), sum(rereads_cost), sum(added_cost), sum(misses),
       sum(misses_cost), sum(over_window), sum(over_window_cost), sum(forced), sum(forced_cost),
       sum(older), sum(older_cost), sum(unpriced), sum(estimated), max(highest), sum(reported),
       sum(miscounted)
FROM refold.totals WHERE tenant = $1 AND day BETWEEN $2 AND $3
GROUP BY day, model, key ORDER BY day, model, key

-- name: dearest
SELECT 0, ''::bytea, ''::bytea, holder.session,
       sum(requests), sum(folds), sum(input), sum(output), sum(cache_read), sum(cache_write),
       sum(compared), sum(paid), sum(whole), sum(summaries), sum(summaries_cost), sum(unused),
       sum(unused_cost), sum(rereads), sum(rereads_cost), sum(added_cost), sum(misses),
       sum(misses_cost), sum(over_window), sum(over_window_cost), sum(forced), sum(forced_cost),
       sum(older), sum(older_cost), sum(unpriced), sum(estimated), max(highest), sum(reported),
       sum(miscounted)
FROM refold.totals JOIN refold.sessions AS holder
  ON holder.tenant = totals.tenant AND holder.key = totals.session
WHERE totals.tenant = $1 AND day BETWEEN $2 AND $3 AND holder.session IS NOT NULL
GROUP BY totals.session, holder.session HAVING $5::boolean OR sum(paid) > sum(whole)
ORDER BY sum(paid) + CASE WHEN $5::boolean THEN sum(over_window_cost) + sum(older_cost)
                          ELSE -sum(whole) END DESC, totals.session LIMIT $4

-- name: sessions
SELECT count(DISTINCT session) FROM refold.totals WHERE tenant = $1 AND day BETWEEN $2 AND $3

-- name: uncounted
SELECT count(*) FROM refold.accounts JOIN refold.sessions AS holder
  ON holder.tenant = accounts.tenant AND holder.key = accounts.session
WHERE accounts.tenant = $1 AND state IS NULL AND holder.session IS NOT NULL

-- name: some_uncounted
SELECT holder.session FROM refold.accounts JOIN refold.sessions AS holder
  ON holder.tenant = accounts.tenant AND holder.key = accounts.session
WHERE accounts.tenant = $1 AND state IS NULL AND holder.session IS NOT NULL
ORDER BY accounts.session DESC LIMIT $2
