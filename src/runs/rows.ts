/** PostgreSQL answers a bigint as text. */
export function numberOf(value: unknown): number {
  return Number(value)
}

export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value)
}
