/** One thing that decides whether what is acknowledged is safe. */
export interface Finding {
  readonly name: string
  readonly verdict: 'ok' | 'warning' | 'danger'
  readonly found: string
  /** What to do; null where all is well. */
  readonly advice: string | null
}

/** One of a setting that is fine, or is not. */
export function finding(
  name: string,
  fine: boolean,
  found: string,
  verdict: 'warning' | 'danger',
  advice: string,
): Finding {
  return { name, verdict: fine ? 'ok' : verdict, found, advice: fine ? null : advice }
}
