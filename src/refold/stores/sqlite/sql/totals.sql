-- name: state
SELECT state FROM accounts WHERE session = ?

-- name: put_state
INSERT INTO accounts (session, tenant, state) VALUES (?, ?, ?)
ON CONFLICT (session) DO UPDATE SET state = excluded.state

-- name: count_later
UPDATE accounts SET state = NULL WHERE session = ?

-- name: count_all_later
INSERT INTO accounts (session, tenant)
SELECT key, tenant FROM sessions WHERE tenant = ? AND session IS NOT NULL
ON CONFLICT (session) DO UPDATE SET state = NULL

-- name: drop_lost_states
DELETE FROM accounts WHERE tenant = ?1 AND session NOT IN (
    SELECT key FROM sessions WHERE tenant = ?1 AND session IS NOT NULL
)

-- name: drop_lost_lines
DELETE FROM totals WHERE tenant = ?1 AND session NOT IN (
    SELECT key FROM sessions WHERE tenant = ?1 AND session IS NOT NULL
)

-- name: drop_state
DELETE FROM accounts WHERE session = ?

-- name: drop_lines
DELETE FROM totals WHERE session = ?

-- name: add_line
INSERT INTO totals (
    tenant, day, session, model, key, requests, folds, input, output, cache_read, cache_write,
    compared, paid, whole, summaries, summaries_cost, unused, unused_cost, rereads, rereads_cost,
    added_cost, misses, misses_cost, over_window, over_window_cost, forced, forced_cost, older,
    older_cost, unpriced, estimated, highest, reported, miscounted
) VALUES (
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    ?, ?
) ON CONFLICT DO UPDATE SET
    requests = requests + excluded.requests, folds = folds + excluded.folds, input = input +
    excluded.input, output = output + excluded.output, cache_read = cache_read +
    excluded.cache_read, cache_write = cache_write + excluded.cache_write, compared = compared +
    excluded.compared, paid = paid + excluded.paid, whole = whole + excluded.whole, summaries =
    summaries + excluded.summaries, summaries_cost = summaries_cost + excluded.summaries_cost,
    unused = unused + excluded.unused, unused_cost = unused_cost + excluded.unused_cost, rereads =
    rereads + excluded.rereads, rereads_cost = rereads_cost + excluded.rereads_cost, added_cost =
    added_cost + excluded.added_cost, misses = misses + excluded.misses, misses_cost = misses_cost +
    excluded.misses_cost, over_window = over_window + excluded.over_window, over_window_cost =
    over_window_cost + excluded.over_window_cost, forced = forced + excluded.forced, forced_cost =
    forced_cost + excluded.forced_cost, older = older + excluded.older, older_cost = older_cost +
    excluded.older_cost, unpriced = unpriced + excluded.unpriced, estimated = estimated +
    excluded.estimated, highest = max(highest, excluded.highest), reported = reported +
    excluded.reported, miscounted = miscounted + excluded.miscounted

-- name: by_day
SELECT day, model, key, '',
       sum(requests), sum(folds), sum(input), sum(output), sum(cache_read), sum(cache_write),
       sum(compared), sum(paid), sum(whole), sum(summaries), sum(summaries_cost), sum(unused),
       sum(unused_cost), sum(rereads), sum(rereads_cost), sum(added_cost), sum(misses),
       sum(misses_cost), sum(over_window), sum(over_window_cost), sum(forced), sum(forced_cost),
       sum(older), sum(older_cost), sum(unpriced), sum(estimated), max(highest), sum(reported),
       sum(miscounted)
FROM totals WHERE tenant = ? AND day BETWEEN ? AND ?
GROUP BY day, model, key ORDER BY day, model, key

-- name: dearest
SELECT 0, '', '', sessions.session,
       sum(requests), sum(folds), sum(input), sum(output), sum(cache_read), sum(cache_write),
       sum(compared), sum(paid), sum(whole), sum(summaries), sum(summaries_cost), sum(unused),
       sum(unused_cost), sum(rereads), sum(rereads_cost), sum(added_cost), sum(misses),
       sum(misses_cost), sum(over_window), sum(over_window_cost), sum(forced), sum(forced_cost),
       sum(older), sum(older_cost), sum(unpriced), sum(estimated), max(highest), sum(reported),
       sum(miscounted)
FROM totals JOIN sessions ON sessions.key = totals.session
WHERE totals.tenant = ?1 AND day BETWEEN ?2 AND ?3 AND sessions.session IS NOT NULL
GROUP BY totals.session HAVING ?5 OR sum(paid) > sum(whole)
ORDER BY sum(paid) + iif(?5, sum(over_window_cost) + sum(older_cost), -sum(whole)) DESC,
         totals.session LIMIT ?4

-- name: sessions
SELECT count(DISTINCT session) FROM totals WHERE tenant = ? AND day BETWEEN ? AND ?

-- name: uncounted
SELECT count(*) FROM accounts JOIN sessions ON sessions.key = accounts.session
WHERE accounts.tenant = ? AND state IS NULL AND sessions.session IS NOT NULL

-- name: some_uncounted
SELECT sessions.session FROM accounts JOIN sessions ON sessions.key = accounts.session
WHERE accounts.tenant = ? AND state IS NULL AND sessions.session IS NOT NULL
ORDER BY accounts.session DESC LIMIT ?
