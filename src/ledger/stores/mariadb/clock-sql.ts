/**
 * The store's time in milliseconds, when the statement began, plus the offset that tests keep in the store. `UTC_TIMESTAMP`
 * does not depend on the time zone of the session, as `UNIX_TIMESTAMP(NOW())` does when clocks are set back.
 */
export const NOW = `(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 + (SELECT offset_ms FROM onceonly_meta))`
