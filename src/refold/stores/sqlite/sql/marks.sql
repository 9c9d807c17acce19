-- name: newest
SELECT max(place) & 0xffffffff FROM marks WHERE place BETWEEN ? AND ?

-- name: put
INSERT INTO marks (place, key) VALUES (?, ?)

-- name: drop
DELETE FROM marks WHERE place BETWEEN ? AND ?

-- name: marked
WITH RECURSIVE asked (nth) AS (
    SELECT 0 WHERE :count > 0 UNION ALL SELECT nth + 1 FROM asked WHERE nth + 1 < :count
)
SELECT marks.key, sessions.session, marks.place & 0xffffffff,
       (SELECT max(place) & 0xffffffff FROM marks AS own
        WHERE own.place BETWEEN sessions.key << 32 AND sessions.key << 32 | 0xffffffff),
       coalesce((
           SELECT place & 0xffffffff FROM marks AS own
           WHERE own.place BETWEEN sessions.key << 32 AND sessions.key << 32 | 0xffffffff
           ORDER BY place DESC LIMIT 1 OFFSET 1
       ), 0)
FROM asked
CROSS JOIN marks INDEXED BY marks_key ON marks.key = substr(:keys, nth * 16 + 1, 16)
CROSS JOIN sessions ON sessions.key = marks.place >> 32
WHERE sessions.tenant = :tenant
ORDER BY marks.id DESC
