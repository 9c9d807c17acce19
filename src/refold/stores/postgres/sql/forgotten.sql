-- name: one_moment
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: see_all_tenants
SET LOCAL row_security = off

-- name: forgotten_sessions
SELECT tombstones.tenant, tombstones.session, forgotten_at, first.id
FROM refold.tombstones
LEFT JOIN refold.sessions USING (tenant, session)
LEFT JOIN refold.segments ON segments.tenant = sessions.tenant
    AND segments.session = sessions.key AND segments.first = 1
LEFT JOIN refold.entries AS first ON first.tenant = sessions.tenant
    AND first.session = coalesce(segments.source, sessions.key) AND first.seq = 1
ORDER BY 1, 2

-- name: forgotten_entries
SELECT sessions.tenant, sessions.session, entries.seq, entries.id
FROM refold.entries
JOIN (
    SELECT tenant, key AS reader, key AS source, own_from AS first, head AS last
    FROM refold.sessions
    UNION ALL
    SELECT tenant, session, source, first, last FROM refold.segments
) AS part ON part.tenant = entries.tenant AND part.source = entries.session
         AND entries.seq BETWEEN part.first AND part.last
JOIN refold.sessions ON sessions.tenant = part.tenant AND sessions.key = part.reader
WHERE entries.forgotten AND sessions.session IS NOT NULL
ORDER BY 1, 2, 3
