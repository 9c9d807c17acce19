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

-- name: note_wal
INSERT INTO refold.erasures (begun, part)
SELECT true, 'pg_wal' WHERE EXISTS (SELECT FROM refold.erasures WHERE begun)
    AND NOT EXISTS (SELECT FROM refold.erasures WHERE part = 'pg_wal')

-- name: parts
SELECT DISTINCT part::text, to_regclass(format('refold.%I', part)) IS NOT NULL
FROM refold.erasures WHERE begun AND part NOT IN ('pg_wal', 'wal_recycle') ORDER BY 1

-- name: may_see_notes
SELECT has_table_privilege('refold.erasures', 'SELECT')
       AND NOT row_security_active('refold.erasures')

-- name: notes
SELECT DISTINCT part::text FROM refold.erasures ORDER BY 1

-- name: is_noted
SELECT EXISTS (SELECT FROM refold.erasures WHERE part = $1::name)

-- name: note_recycling
INSERT INTO refold.erasures (begun, part) VALUES (true, 'wal_recycle')

-- name: rewrite
VACUUM (FULL, VERBOSE) refold.{part}

-- name: end
DELETE FROM refold.erasures WHERE begun AND part = $1::name

-- name: checkpoint
CHECKPOINT

-- name: recycles
SELECT current_setting('wal_recycle') = 'on'

-- name: recycle_no_more
ALTER SYSTEM SET wal_recycle = off

-- name: recycle_again
ALTER SYSTEM RESET wal_recycle

-- name: reload
SELECT pg_reload_conf()

-- name: segments
SELECT name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$' ORDER BY 1

-- name: current_segment
SELECT pg_walfile_name(pg_current_wal_insert_lsn())

-- name: next_segment
SELECT pg_logical_emit_message(false, 'refold', '') IS NOT NULL AND pg_switch_wal() IS NOT NULL

-- name: held_by
SELECT format('the replication slot %s', slot_name) FROM pg_replication_slots
WHERE restart_lsn IS NOT NULL
UNION ALL
SELECT 'the archive, which has not taken them yet' WHERE current_setting('archive_mode') <> 'off'
UNION ALL
SELECT 'wal_keep_size = ' || current_setting('wal_keep_size')
WHERE current_setting('wal_keep_size') <> '0'
