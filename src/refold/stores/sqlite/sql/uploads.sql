-- name: has_artifact
SELECT 1 FROM artifacts WHERE tenant = ? AND hash = ?

-- name: begin
INSERT INTO uploads (at) VALUES (?)

-- name: add_piece
INSERT INTO upload_pieces (place, data) SELECT ?, ? FROM uploads WHERE id = ? AND at > 0

-- name: claim
UPDATE uploads SET artifact = ? WHERE id = ? AND artifact IS NULL AND at > 0

-- name: of_artifact
SELECT id FROM uploads WHERE artifact = ?

-- name: pieces
SELECT data FROM upload_pieces WHERE place BETWEEN ? AND ? ORDER BY place

-- name: unclaimed
SELECT id FROM uploads WHERE artifact IS NULL AND at < ?

-- name: give_up
UPDATE uploads SET at = 0 WHERE id = ? AND artifact IS NULL

-- name: drop_piece
DELETE FROM upload_pieces
WHERE place = (SELECT max(place) FROM upload_pieces WHERE place BETWEEN ? AND ?)

-- name: drop_pieces
DELETE FROM upload_pieces WHERE place BETWEEN ? AND ?

-- name: drop
DELETE FROM uploads WHERE id = ?
