/** Part after part, also when one cannot end as it should: what is left running would keep the process alive. */
export async function endAll(parts: readonly (() => unknown)[]): Promise<void> {
  const failures: unknown[] = []
  for (const end of parts) {
    try {
      await end()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}

/** All at once; the first failure is thrown when all are over. */
export async function endTogether(parts: readonly { stop(): Promise<void> }[]): Promise<void> {
  const ends = await Promise.allSettled(parts.map((part) => part.stop()))
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
