/** One thing that decides whether what is acknowledged is safe. */
export interface Finding {
  readonly name: string
  readonly verdict: 'ok' | 'warning' | 'danger'
  readonly found: string
  /** What to do; null where all is well. */
  readonly advice: string | null
}
