-- name: newest
WITH listed AS (
    SELECT key, session, used, coalesce(
        (SELECT at FROM entries
         WHERE place BETWEEN key << 32 | own_from AND key << 32 | 0xffffffff
         ORDER BY place DESC LIMIT 1),
        created_at
    ) AS updated_at
    FROM sessions WHERE tenant = :tenant AND session IS NOT NULL AND used <= :used
)
SELECT key, session, updated_at FROM listed
WHERE (updated_at, key) < (:updated_at, :key)
ORDER BY used DESC, updated_at DESC, key DESC
