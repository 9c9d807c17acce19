-- name: lock
SELECT pg_advisory_lock(hashtextextended('refold scrub', 0))

-- name: unlock
SELECT pg_advisory_unlock(hashtextextended('refold scrub', 0))

-- name: be_patient
SELECT set_config('statement_timeout', '0', false), set_config('lock_timeout', $1, false)

-- name: be_as_before
SELECT set_config('statement_timeout', reset_val, false) FROM pg_settings
WHERE name = 'statement_timeout'
UNION ALL
SELECT set_config('lock_timeout', reset_val, false) FROM pg_settings WHERE name = 'lock_timeout'

-- name: begin
UPDATE refold.erasures SET begun = true WHERE NOT begun

-- name: parts
SELECT DISTINCT part::text, to_regclass(format('refold.%I', part)) IS NOT NULL
FROM refold.erasures WHERE begun ORDER BY 1

-- name: rewrite
VACUUM (FULL, VERBOSE) refold.{part}

-- name: end
DELETE FROM refold.erasures WHERE begun AND part = $1::name

-- name: checkpoint
CHECKPOINT
