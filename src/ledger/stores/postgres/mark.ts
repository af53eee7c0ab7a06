/** The setting that names the open transaction, and what the error of another one begins with. */
export const MARK = 'onceonly.transaction'
export const OTHER = 'onceonly: another transaction'

/**
 * The arm of a CASE that fails unless this is still our transaction, and with it whatever stands in the same message.
 * Code that kept the connection from elsewhere may have ended it, and the statements after that were on their own.
 */
export function failUnlessMarked(mark: string): string {
  const current = `current_setting('${MARK}', true)`
  return `WHEN ${current} IS DISTINCT FROM ${mark} THEN concat('${OTHER} ', ${current})::integer`
}
