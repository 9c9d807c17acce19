-- name: append_plain
SELECT refold.append_plain($1::text, $2::bigint, $3::bigint, $4::bigint, $5::uuid, $6::bigint,
                           $7::text, $8::bigint, $9::bytea, $10::boolean, $11::bytea)

-- name: append
SELECT refold.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                     $18, $19, $20, $21, $22, $23, $24)

-- name: begin_session
SELECT refold.begin_session($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                            $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)
